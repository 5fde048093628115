"""The wallet report: what one account earned, paid and traded.

Its prose stands in ``notebooks/wallet.py``; here is what that notebook calls.
"""

from typing import Any, Final

import pandas as pd

from toolkit import plots
from toolkit.client import Session
from toolkit.errors import ReportFailed
from toolkit.reports import blocks
from toolkit.reports.blocks import Blocks, Title
from toolkit.reports.example import example_account
from toolkit.reports.material import Material, gather
from toolkit.reports.results import Results
from toolkit.times import Time, to_iso

__all__ = ["frames_of", "funding_figures", "results_of", "title_of"]

_BY_COIN: Final = "Funding paid and received by coin, in USD."
_BY_DAY: Final = "Funding by day, and its running sum, in USD."


def results_of(
    session: Session,
    user: str | None,
    start: Time = 0,
    end: Time | None = None,
    builders: list[str] | None = None,
) -> Results:
    """Fetch everything about an account, and compute what the report says.

    Raises
    ------
    BadRequest
        If the address is malformed.
    ReportFailed
        If nothing is known of the account.
    """
    account = example_account(session) if user is None else user
    material = gather(session, account, start, end, builders)
    if material.is_empty:
        raise ReportFailed(
            f"nothing is known of {account} in this period: no fills, no ledger updates, no funding"
        )
    return Results(material)


def title_of(results: Results) -> Title:
    """Head the report."""
    made = results.material
    first, last = _period(made)
    return blocks.title(
        "Wallet report",
        made.user,
        f"{first} to {last} UTC · {made.source}",
        simulated=made.simulated,
    )


def funding_figures(results: Results) -> Blocks:
    """Draw funding where it is covered; nothing else is drawn as 0."""
    if results.funding is None:
        return Blocks([])
    coins, days = results.funding_sums("coin"), results.funding_sums("day")
    return Blocks(
        [
            blocks.figure(plots.funding_by_coin, coins, caption=_BY_COIN),
            blocks.figure(plots.funding_over_time, days, caption=_BY_DAY),
        ]
    )


def frames_of(results: Results) -> dict[str, pd.DataFrame | None]:
    """Give what was fetched, by name, for the provenance."""
    material = results.material
    return {
        "fills": material.fills,
        "funding": material.funding,
        "ledger": material.ledger,
        "slippage": material.slippage if len(material.slippage) else None,
        "positions": None if material.states is None else material.states.positions,
    }


def _period(material: Material) -> tuple[str, str]:
    """Say from when to when: without a start, the first thing that happened."""
    first: Any = to_iso(material.start_ms)[:16].replace("T", " ")
    if material.start_ms == 0 and len(material.fills) + len(material.ledger):
        times = pd.concat([material.fills["time"], material.ledger["time"]])
        first = f"{times.min():%Y-%m-%d %H:%M}"
    return first, to_iso(material.end_ms)[:16].replace("T", " ")
