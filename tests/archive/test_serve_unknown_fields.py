"""Unknown fields survive the archive and the service on it.

docs/live_service.md, section 1.
"""

import json

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.offline import offline_session
from tests.archive.world import ChangedAnswers, store_session
from toolkit.archive import open as open_archive
from toolkit.local_service import simulated_store


def with_unknown(value, depth=0):
    """Return an answer in which each object has a further field, also in records in records."""
    if isinstance(value, list):
        return [with_unknown(item, depth) for item in value]
    if not isinstance(value, dict):
        return value
    known = {name: with_unknown(item, depth + 1) for name, item in value.items()}
    return known | {f"next{depth}": f"x{depth}"}


def change(content):
    return json.dumps(with_unknown(json.loads(content))).encode()


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
def test_unknown_fields_are_served(tmp_path):
    through = lambda inner: ChangedAnswers(inner, change)  # noqa: E731
    session = store_session(simulated_store(7, "tiny"), through=through)
    session.source.has_fixed_clock = True
    world = simulated_store(7, "tiny").about["world"]
    user, builder = world["users"][0], world["builders"][0]
    calls = [
        (tk.user_fills_by_time, user, "2025-09-29"),
        (tk.builder_approved_fills_by_time, builder, "2025-09-29"),
        (tk.historical_orders, user),
        (tk.builder_approved_funding_by_time, builder, "2025-09-29"),
        (tk.user_non_funding_ledger_updates, user, 0),
        (tk.slippage_history, "BTC", 1000, "2025-09-29"),
        (tk.meta,),
    ]
    archive = open_archive(tmp_path)
    for fetch, *arguments in calls:
        archive.refresh(fetch, *arguments, session=session)
    served = offline_session(tmp_path)
    for fetch, *arguments in calls:
        fetched = fetch(*arguments, extra="keep", session=session)
        unknown = {"next0"} if fetch is tk.slippage_history else {"next0", "next1"}
        assert unknown <= {name.rpartition("_")[2] for name in fetched.columns}
        pd.testing.assert_frame_equal(fetch(*arguments, extra="keep", session=served), fetched)
