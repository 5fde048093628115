"""The wallet report: what one account earned, paid and traded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from toolkit import plots
from toolkit.client import Session, current_session
from toolkit.reports import wallet_words
from toolkit.reports.example import example_account
from toolkit.reports.figures import page_figure
from toolkit.reports.material import Material, gather
from toolkit.reports.page import render
from toolkit.reports.provenance import sources_of, versions
from toolkit.reports.results import Results
from toolkit.reports.wallet_tables import tables_of
from toolkit.reports.wallet_words import Headline
from toolkit.times import Time, iso

__all__ = ["Wallet", "build", "wallet"]


class Wallet(NamedTuple):
    """A wallet report before it is written: its page, and its headline numbers."""

    user: str
    html: str
    headlines: list[Headline]


def wallet(
    user: str | None = None,
    start: Time = 0,
    end: Time | None = None,
    *,
    builders: Sequence[str] | None = None,
    out: str | Path = "build/report/wallet.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one account: one HTML file that needs nothing else.

    The same data gives the same bytes. Money is computed in exact decimals.

    Parameters
    ----------
    user : str, optional
        Address of the account; an example account of the simulated exchange when not given.
    start : Time
        First time, inclusive; the beginning when not given.
    end : Time, optional
        Last time, inclusive; now when not given.
    builders : sequence of str, optional
        Builders that the account had approved: funding rows can be had only through them.
        When not given, those through which its latest fills were routed, or all that a local
        source has. An empty list asks for no funding: for a builder with many clients this
        saves many points.
    out : path, default "build/report/wallet.html"
        Where to write; folders are made.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    BadRequest
        If the address is malformed.
    ValueError
        If no account is named and the source does not say which it has.

    Notes
    -----
    Funding is compared with the positions that the fills show, and the report says how many of
    the hours it covers; where it covers none, it is missing, not 0.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> folder = tempfile.TemporaryDirectory()
    >>> wallet(out=Path(folder.name) / "wallet.html").stat().st_size > 100_000
    True
    >>> folder.cleanup()
    """
    made = build(user, start, end, builders=builders, session=session)
    return write(made.html, out)


def build(
    user: str | None = None,
    start: Time = 0,
    end: Time | None = None,
    *,
    builders: Sequence[str] | None = None,
    session: Session | None = None,
) -> Wallet:
    """Build a wallet report without writing it; parameters as in `wallet`."""
    session = current_session(session)
    account = example_account(session) if user is None else user
    material = gather(session, account, start, end, builders)
    if material.is_empty:
        raise ValueError(
            f"nothing is known of {account} in this period: no fills, no ledger updates, no funding"
        )
    results = Results(material)
    return Wallet(account, page_of(results), wallet_words.headlines(results))


def page_of(results: Results) -> str:
    """Write the page of results."""
    material = results.material
    return render(
        "wallet.html",
        title=f"Wallet {material.user}",
        user=material.user,
        source=material.source,
        simulated=material.simulated,
        period=_period(material),
        headlines=wallet_words.headlines(results),
        summary=wallet_words.summary(results),
        coverage=wallet_words.coverage(results),
        checks=wallet_words.checks(results),
        figures=_figures(results),
        tables=tables_of(results),
        sources=sources_of(_frames(material)),
        versions=versions(),
    )


def write(html: str, out: str | Path) -> Path:
    """Write a page, with its folders, in the same bytes on every system."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(html.encode("utf-8"))
    return path


def _figures(results: Results) -> dict[str, Any]:
    whole = results.attribution()
    drawn = {
        "waterfall": (plots.waterfall, whole if results.whole["fills"] else whole.iloc[:0]),
        "cumulative": (plots.cumulative_pnl, results.attribution(by="hour")),
        "slippage": (plots.slippage_curve, results.slippage),
    }
    if results.funding is not None:
        drawn["funding"] = (plots.funding_by_coin, results.funding_sums("coin"))
        drawn["funding_days"] = (plots.funding_over_time, results.funding_sums("day"))
    return {name: page_figure(draw, result) for name, (draw, result) in drawn.items()}


def _frames(material: Material) -> dict[str, pd.DataFrame | None]:
    return {
        "fills": material.fills,
        "funding": material.funding,
        "ledger": material.ledger,
        "slippage": material.slippage if len(material.slippage) else None,
    }


def _period(material: Material) -> tuple[str, str]:
    """Say from when to when: without a start, the first thing that happened."""
    first = material.start_ms
    if first == 0 and len(material.fills) + len(material.ledger):
        times = pd.concat([material.fills["time"], material.ledger["time"]])
        return f"{times.min():%Y-%m-%d %H:%M}", iso(material.end_ms)[:16].replace("T", " ")
    return iso(first)[:16].replace("T", " "), iso(material.end_ms)[:16].replace("T", " ")
