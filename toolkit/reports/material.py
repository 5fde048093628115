"""What a wallet report is made of: everything fetched, once, for one account and period."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import pandas as pd

from toolkit.analysis.common.markets import NOT_PERP
from toolkit.client import Session
from toolkit.contract.dexes import coin_dex
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import Incomplete, NotPermitted, NotReady
from toolkit.fetch import (
    AccountStates,
    batch_clearinghouse_states,
    builder_approved_funding_by_time,
    meta,
    slippage_history,
    user_fills,
    user_fills_by_time,
    user_non_funding_ledger_updates,
)
from toolkit.plots.formats import short_usd
from toolkit.times import DAY, Time, to_ms

__all__ = [
    "STATES",
    "Material",
    "builders_of",
    "gather",
    "is_perp",
    "joined",
    "left_out",
    "listed_reasons",
    "payments_to",
    "samples_of",
    "shown",
]

F = TypeVar("F")

COINS: Final = 3  # whose slippage is shown: those the account traded most
SLIPPAGE_DAYS: Final = 30
STATES: Final = "what it is worth"


@dataclass(frozen=True, slots=True)
class Material:
    """The frames of a wallet report, money in exact decimals.

    Attributes
    ----------
    user : str
        Address of the account.
    start_ms, end_ms : int
        The period, both ends inclusive.
    fills, ledger : DataFrame
        All fills and ledger updates of the period.
    funding : DataFrame or None
        Funding rows while a builder was approved; None where no builder is known.
    builders : tuple of str
        Whose funding rows were asked for.
    perps : DataFrame
        Metadata of the dexes that the account traded on.
    slippage : DataFrame
        Samples of the coins it traded most, all sizes.
    states : AccountStates or None
        What it is worth and what is open, on all dexes; None where the period ends before now.
    source : str
        What the session calls its source.
    simulated : bool
        Whether the source is invented.
    lacking : mapping of str to str
        What the source, as an archive, does not have of all that -> why.
    """

    user: str
    start_ms: int
    end_ms: int
    fills: pd.DataFrame
    ledger: pd.DataFrame
    funding: pd.DataFrame | None
    builders: tuple[str, ...]
    perps: pd.DataFrame
    slippage: pd.DataFrame
    states: AccountStates | None
    source: str
    simulated: bool
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known of the account in this period."""
        funding = self.funding is not None and len(self.funding) > 0
        return not (len(self.fills) or len(self.ledger) or funding)


def gather(
    session: Session, user: str, start: Time, end: Time | None, builders: Sequence[str] | None
) -> Material:
    """Fetch everything that a wallet report shows."""
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    fills = user_fills_by_time(user, start_ms, end_ms, numbers="exact", session=session)
    ledger = user_non_funding_ledger_updates(
        user, start_ms, end_ms, numbers="exact", session=session
    )
    asked = tuple(builders) if builders is not None else builders_of(session, user)
    lacking: dict[str, str] = {}
    return Material(
        user=user,
        start_ms=start_ms,
        end_ms=end_ms,
        fills=fills,
        ledger=ledger,
        funding=funding_of(session, user, asked, start_ms, end_ms, lacking),
        builders=asked,
        perps=_perps(session, fills),
        slippage=_slippage(session, fills, end_ms, lacking),
        states=_states(session, user, lacking) if end_ms >= now else None,
        source=session.label,
        simulated=session.simulated,
        lacking=lacking,
    )


def shown(
    lacking: dict[str, str], what: str, fetch: Callable[..., F], *arguments: Any, **named: Any
) -> F | None:
    """Fetch what a report can do without.

    Parameters
    ----------
    lacking : dict
        Gains `what`, and why it is missing, where the source does not have it.
    what : str
        What the report calls it.
    fetch : callable
        Fetches it, given the other arguments.

    Returns
    -------
    object or None
        What `fetch` gives; None where the key may not use it, or the source does not have it.
    """
    try:
        return fetch(*arguments, **named)
    except (NotPermitted, NotReady):
        return None
    except Incomplete as error:
        lacking[what] = str(error.__cause__ or error)
        return None


def left_out(lacking: Mapping[str, str]) -> str:
    """Say, behind other words, what a report does not show and why; nothing where it shows all.

    Examples
    --------
    >>> left_out({"depth": "it was not archived"})
    ' Left out, since the source does not have it all: depth (it was not archived).'
    """
    if not lacking:
        return ""
    return f" Left out, since the source does not have it all: {listed_reasons(lacking)}."


def listed_reasons(lacking: Mapping[str, str]) -> str:
    """Return what a report does not show, each with the reason."""
    return "; ".join(f"{what} ({why})" for what, why in lacking.items())


def builders_of(session: Session, user: str) -> tuple[str, ...]:
    """Give the builders through which the account's latest fills were routed.

    Where there are none, or the source does not have them, and it says which builders it has, it
    is all of these.
    """
    known = tuple((session.world or {}).get("builders", ()))
    latest = shown({}, "", user_fills, user, session=session)
    if latest is None:
        return known
    routed = tuple(sorted(latest["builder"].dropna().unique()))
    return routed or known


def funding_of(
    session: Session,
    user: str,
    builders: Sequence[str],
    start_ms: int,
    end_ms: int,
    lacking: dict[str, str],
) -> pd.DataFrame | None:
    """Fetch the funding rows of builders, and give those of the account; None where none can be.

    What cannot be had of some is added to `lacking`.
    """
    fetch = partial(
        builder_approved_funding_by_time,
        start=start_ms,
        end=end_ms,
        numbers="exact",
        session=session,
    )
    had = {one: shown(lacking, f"funding by {one}", fetch, one) for one in builders}
    frames = [one for one in had.values() if one is not None]
    builders = [name for name, one in had.items() if one is not None]
    if not frames:
        return None
    origin = joined(frames, builder=", ".join(builders)).attrs["toolkit"]
    rows = payments_to(user, frames)
    rows.attrs["toolkit"] = {**origin, "rows": len(rows)}
    return rows


def payments_to(user: str, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Give an account's rows out of the funding rows of several builders, each payment once."""
    rows = joined([frame[frame["user"] == user.lower()] for frame in frames])
    rows = rows.drop_duplicates(["time", "coin"])
    return rows.sort_values(["time", "coin"], kind="stable").reset_index(drop=True)


def is_perp(coins: pd.Series) -> pd.Series:
    """Tell perps from spot pairs (``@1``, ``A/B``) and outcome markets (``#1``)."""
    return ~coins.str.contains(NOT_PERP, regex=True)


def joined(frames: Sequence[pd.DataFrame], **parameters: str) -> pd.DataFrame:
    """Put answers to like questions below each other, with one provenance.

    Parameters
    ----------
    frames : sequence of DataFrame
        At least one; the first one's provenance is taken.
    **parameters
        What the questions differed in, in words.
    """
    origin = frames[0].attrs.get("toolkit", {})
    # Different attrs would be dropped without a word, and compared at great length.
    rows = pd.concat([_bare(frame) for frame in frames], ignore_index=True)
    asked = {**origin.get("parameters", {}), **parameters}
    rows.attrs = {"toolkit": {**origin, "parameters": asked, "rows": len(rows)}}
    return rows


def _bare(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame without its attrs; the one given keeps them."""
    bare = frame.copy(deep=False)
    bare.attrs = {}
    return bare


def _perps(session: Session, fills: pd.DataFrame) -> pd.DataFrame:
    coins = fills["coin"][is_perp(fills["coin"])].unique()
    dexes = sorted({coin_dex(coin) for coin in coins} | {""})
    return joined([meta(dex=dex, session=session) for dex in dexes])


def _states(session: Session, user: str, lacking: dict[str, str]) -> AccountStates | None:
    """Fetch what an account is worth on every dex; None where it cannot be had."""
    fetch = partial(batch_clearinghouse_states, dex="ALL_DEXES", numbers="exact", session=session)
    states = shown(lacking, STATES, fetch, [user])
    return None if states is None or len(states.failed) or states.accounts.empty else states


def _slippage(
    session: Session, fills: pd.DataFrame, end_ms: int, lacking: dict[str, str]
) -> pd.DataFrame:
    """Fetch the samples of the coins traded most, over the last days of the period."""
    volume = fills["px"].astype("float64") * fills["sz"].astype("float64")
    perps = is_perp(fills["coin"])
    sums = volume[perps].groupby(fills["coin"][perps]).sum()
    most = sums.sort_values(ascending=False, kind="stable").index[:COINS]
    fetch = partial(samples_of, session, start_ms=end_ms - SLIPPAGE_DAYS * DAY, end_ms=end_ms)
    had = {coin: shown(lacking, f"slippage of {coin}", fetch, coin) for coin in most}
    frames = [one for one in had.values() if one is not None]
    coins = [coin for coin, one in had.items() if one is not None]
    return joined(frames, coin=", ".join(coins)) if frames else pd.DataFrame()


def samples_of(
    session: Session,
    coin: str,
    start_ms: int,
    end_ms: int,
    amounts: Sequence[float] = tuple(AMOUNTS),
) -> pd.DataFrame:
    """Fetch the slippage samples of a coin, all sizes in one frame."""
    frames = [
        slippage_history(coin, amount, start_ms, end_ms, page_size=2000, session=session)
        for amount in amounts
    ]
    return joined(frames, amount=", ".join(map(short_usd, amounts)))
