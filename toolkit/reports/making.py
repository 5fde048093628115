"""The reports that come with this package, as functions."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.client import Session, current_session
from toolkit.reports.building import build, write
from toolkit.reports.source import source_of
from toolkit.times import Time

__all__ = ["builder", "market", "market_quality", "run", "wallet"]


def wallet(
    user: str | None = None,
    start: Time = 0,
    end: Time | None = None,
    *,
    builders: Sequence[str] | None = None,
    out: str | os.PathLike[str] = "build/report/wallet.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one account: one HTML file that needs nothing else.

    The same data gives the same bytes. Money is computed in exact decimals. The report is a
    notebook that runs in a kernel of its own, over the same source as the session.

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
        Whose source to use; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If the address is malformed, nothing is known of the account, or it has to be named
        because the source does not say which accounts it has.

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
    asked = {
        "user": user,
        "start": _plain(start),
        "end": _plain(end),
        "builders": None if builders is None else list(builders),
    }
    return run("wallet", out, session=session, **asked)


def market(
    coin: str,
    start: Time = "30d",
    end: Time | None = None,
    *,
    out: str | os.PathLike[str] = "build/report/market.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one perp: what size costs, when, its book, and who trades by TWAP.

    Parameters
    ----------
    coin : str
        The perp, ``<dex>:<symbol>`` on a builder-deployed dex.
    start, end : Time
        Period of the slippage samples; by default the last 30 days.
    out : path, default "build/report/market.html"
        Where to write; folders are made.
    session : Session, optional
        Whose source to use; the default session when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If there is no such perp, or nothing was sampled.
    """
    asked = {"coin": coin, "start": _plain(start), "end": _plain(end)}
    return run("market", out, session=session, **asked)


def builder(
    address: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    out: str | os.PathLike[str] = "build/report/builder.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one builder: its revenue, its users, what they do elsewhere.

    Parameters
    ----------
    address : str
        The builder.
    start, end : Time
        The period; by default everything.
    out : path, default "build/report/builder.html"
        Where to write; folders are made.
    session : Session, optional
        Whose source to use; the default session when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If nobody traded through it.
    """
    asked = {"address": address, "start": _plain(start), "end": _plain(end)}
    return run("builder", out, session=session, **asked)


def market_quality(
    dex: str = "",
    start: Time = "7d",
    end: Time | None = None,
    *,
    coins: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] = "build/report/market-quality.html",
    session: Session | None = None,
) -> Path:
    """Write a report that compares perps: what a size costs, how much fits, the books.

    Parameters
    ----------
    dex : str, default ""
        Whose perps; the native dex by default.
    start, end : Time
        Period of the slippage samples; by default the last 7 days.
    coins : str or sequence of str, optional
        Which perps; the 12 traded most when not given.
    out : path, default "build/report/market-quality.html"
        Where to write; folders are made.
    session : Session, optional
        Whose source to use; the default session when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If there is no such perp, or nothing was sampled.
    """
    asked = {"dex": dex, "start": _plain(start), "end": _plain(end)}
    picked = [coins] if isinstance(coins, str) else None if coins is None else list(coins)
    return run("market_quality", out, session=session, coins=picked, **asked)


def run(
    notebook: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    code: bool = False,
    session: Session | None = None,
    **parameters: Any,
) -> Path:
    """Write the report of a notebook of your own, or of one that comes with this package.

    Parameters
    ----------
    notebook : str or path
        A ``.py``, ``.md`` or ``.ipynb``, or the name of one of this package's. Its cell tagged
        ``source`` makes ``session`` and is replaced by the source asked for; its cell tagged
        ``parameters`` sets what may be set.
    out : path
        Where to write; folders are made.
    code : bool, default False
        Whether the page shows the code as well, folded.
    session : Session, optional
        Whose source to use; the default session when not given.
    **parameters
        Values for its parameters: numbers, text, flags, None, lists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If there is no such notebook or parameter, or a cell raises.
    """
    page = build(notebook, source_of(current_session(session)), parameters, code=code)
    return write(page.html, out)


def _plain(time: Time | None) -> Any:
    """Give a time as a literal."""
    return time if time is None or isinstance(time, int | str) else str(time)
