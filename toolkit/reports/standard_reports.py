"""The reports of this package as functions: wallet, comparison, market, builder, market quality."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.client import Session, current_session
from toolkit.errors import ReportFailed
from toolkit.reports.build import build, session_source, write_page
from toolkit.times import Time


def wallet(
    user: str | None = None,
    start: Time = 0,
    end: Time | None = None,
    *,
    out: str | os.PathLike[str] = "build/report/wallet.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one account as one self-contained HTML file.

    The same data gives the same bytes. Amounts are fetched as exact decimals and summed as
    floats. The report is a notebook, which runs in a kernel of its own over the source of the
    session.

    Parameters
    ----------
    user : str, optional
        Address of the account; by default an example account of the simulated exchange.
    start : Time
        First time, inclusive; by default the beginning of the history.
    end : Time, optional
        Last time, inclusive; by default now.
    out : path, default "build/report/wallet.html"
        File to write; missing folders are created.
    session : Session, optional
        Session whose source is used; by default that of `tk.connect` or `tk.local`.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If the address is malformed, if there are no rows of the account, or if `user` is missing
        and the source does not name its accounts.

    Notes
    -----
    Funding is compared with the positions from the fills, and the report states how many position
    hours the funding rows cover. If they cover none, funding is missing, not 0. What the source
    does not have, such as slippage on the exchange's own API, is left out, and the summary says so.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = tk.reports.wallet(out=Path(folder.name) / "wallet.html")
    >>> path.stat().st_size > 100_000
    True
    >>> folder.cleanup()
    """
    return run("wallet", out, session=session, user=user, **_period(start, end))


def comparison(
    users: Sequence[str] | None = None,
    start: Time = 0,
    end: Time | None = None,
    *,
    out: str | os.PathLike[str] = "build/report/comparison.html",
    session: Session | None = None,
) -> Path:
    """Write a report that compares accounts: profits, returns, drawdowns, skill or luck.

    Accounts are ranked by the change of their value without deposits.

    Parameters
    ----------
    users : sequence of str, optional
        Addresses of 2 to 50 accounts; by default five accounts of the simulated exchange.
    start : Time
        First time, inclusive; by default the beginning of the history, which returns need.
    end : Time, optional
        Last time, inclusive; by default now.
    out : path, default "build/report/comparison.html"
        File to write; missing folders are created.
    session : Session, optional
        Session whose source is used; by default the default session.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If there are too few or too many accounts, or there are no rows of any of them.
    """
    names = None if users is None else list(users)
    return run("comparison", out, session=session, users=names, **_period(start, end))


def market(
    coin: str,
    start: Time = "30d",
    end: Time | None = None,
    *,
    accounts: Sequence[str] | None = None,
    out: str | os.PathLike[str] = "build/report/market.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one perp: costs, its book, liquidations, positioning, TWAP orders.

    Parameters
    ----------
    coin : str
        The perp, ``<dex>:<symbol>`` on a builder-deployed dex.
    start, end : Time
        Period of the slippage samples; by default the last 30 days.
    accounts : sequence of str, optional
        Addresses of at most 1,000 accounts whose positions count; by default those with the largest
        positions in the latest snapshot of account values or, without a snapshot, those that the
        source names.
    out : path, default "build/report/market.html"
        File to write; missing folders are created.
    session : Session, optional
        Session whose source is used; by default the default session.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If there is no such perp, or there are no samples.
    """
    names = None if accounts is None else list(accounts)
    return run("market", out, session=session, coin=coin, **_period(start, end), accounts=names)


def builder(
    address: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    out: str | os.PathLike[str] = "build/report/builder.html",
    session: Session | None = None,
) -> Path:
    """Write a report about one builder: its revenue, its users, and their other trading.

    Parameters
    ----------
    address : str
        The builder.
    start, end : Time
        The period; by default the whole history.
    out : path, default "build/report/builder.html"
        File to write; missing folders are created.
    session : Session, optional
        Session whose source is used; by default the default session.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If there are no fills through it.
    """
    return run("builder", out, session=session, address=address, **_period(start, end))


def market_quality(
    dex: str = "",
    start: Time = "7d",
    end: Time | None = None,
    *,
    coins: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] = "build/report/market-quality.html",
    session: Session | None = None,
) -> Path:
    """Write a report that compares perps: the cost of a size, the largest order, the books.

    Parameters
    ----------
    dex : str, default ""
        Dex of the perps; by default the native dex.
    start, end : Time
        Period of the slippage samples; by default the last 7 days.
    coins : str or sequence of str, optional
        The perps; by default the 12 with the largest volume.
    out : path, default "build/report/market-quality.html"
        File to write; missing folders are created.
    session : Session, optional
        Session whose source is used; by default the default session.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If there is no such perp, or there are no samples.
    """
    coins = [coins] if isinstance(coins, str) else None if coins is None else list(coins)
    period = _period(start, end)
    return run("market_quality", out, session=session, coins=coins, dex=dex, **period)


def run(
    notebook: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    code: bool = False,
    session: Session | None = None,
    **parameters: object,
) -> Path:
    """Write the report of your own notebook, or of a notebook of this package.

    Parameters
    ----------
    notebook : str or path
        A ``.py``, ``.md`` or ``.ipynb`` file, or the name of a notebook of this package. The source
        of the session replaces its cell with the tag ``source``. Its cell with the tag
        ``parameters`` defines the parameters.
    out : path
        File to write; missing folders are created.
    code : bool, default False
        Whether the page shows the code, folded.
    session : Session, optional
        Session whose source is used; by default the default session.
    **parameters
        Values of its parameters: numbers, text, flags, None, lists.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ReportFailed
        If there is no such notebook or parameter, or a cell raises.
    """
    if Path(out).is_dir():
        raise ReportFailed(f"{out} is a folder. Name the file to write, such as report.html")
    page = build(notebook, session_source(current_session(session)), parameters, code=code)
    return write_page(page.html, out)


def _period(start: Time, end: Time | None) -> dict[str, Any]:
    """Return the parameters of a period, as literals."""
    return {
        name: time if time is None or isinstance(time, int | str) else str(time)
        for name, time in (("start", start), ("end", end))
    }
