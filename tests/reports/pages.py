"""A page of each report of the tiny exchange: its kernel runs once for all tests."""

import toolkit as tk
from tests.made_once import made_once
from toolkit.reports.build import build, session_source

PARAMETERS = {
    "wallet": {"user": "0xaa45621d10dfde65db72de0cb0bbebd2a49c41cb"},  # the example account
    "market": {"coin": "pre:OPENAI"},
    "builder": {},
    "market_quality": {"dex": "eqx"},
    "comparison": {},
}


def report_page(name):
    def make():
        with tk.local(seed=7, size="tiny", default=False) as session:
            return build(name, session_source(session), PARAMETERS[name])

    return made_once(f"report-{name}", make, __file__)
