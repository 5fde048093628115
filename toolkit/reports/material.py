"""What a wallet report is made of: everything fetched, once, for one account and period."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from toolkit.analysis.markets import NOT_PERP
from toolkit.client import Session
from toolkit.contract.dexes import coin_dex
from toolkit.contract.requests import AMOUNTS
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
from toolkit.plots.style import short_usd
from toolkit.times import DAY, Time, to_ms

__all__ = [
    "Material",
    "builders_of",
    "gather",
    "is_perp",
    "joined",
    "payments_to",
    "samples_of",
]

COINS: Final = 3  # whose slippage is shown: those the account traded most
SLIPPAGE_DAYS: Final = 30


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
    return Material(
        user=user,
        start_ms=start_ms,
        end_ms=end_ms,
        fills=fills,
        ledger=ledger,
        funding=funding_of(session, user, asked, start_ms, end_ms) if asked else None,
        builders=asked,
        perps=_perps(session, fills),
        slippage=_slippage(session, fills, end_ms),
        states=_states(session, user) if end_ms >= now else None,
        source=session.label,
        simulated=session.simulated,
    )


def builders_of(session: Session, user: str) -> tuple[str, ...]:
    """Give the builders through which the account's latest fills were routed.

    Where there are none and the source says which builders it has, it is all of these.
    """
    latest = user_fills(user, session=session)
    routed = tuple(sorted(latest["builder"].dropna().unique()))
    return routed or tuple((session.world or {}).get("builders", ()))


def funding_of(
    session: Session, user: str, builders: Sequence[str], start_ms: int, end_ms: int
) -> pd.DataFrame:
    """Fetch the funding rows of builders, and give those of the account."""
    frames = [
        builder_approved_funding_by_time(one, start_ms, end_ms, numbers="exact", session=session)
        for one in builders
    ]
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


def _states(session: Session, user: str) -> AccountStates | None:
    """Fetch what an account is worth on every dex; None where it cannot be had."""
    states = batch_clearinghouse_states([user], dex="ALL_DEXES", numbers="exact", session=session)
    return None if len(states.failed) or states.accounts.empty else states


def _slippage(session: Session, fills: pd.DataFrame, end_ms: int) -> pd.DataFrame:
    """Fetch the samples of the coins traded most, over the last days of the period."""
    volume = fills["px"].astype("float64") * fills["sz"].astype("float64")
    perps = is_perp(fills["coin"])
    sums = volume[perps].groupby(fills["coin"][perps]).sum()
    coins = sums.sort_values(ascending=False, kind="stable").index[:COINS].tolist()
    if not coins:
        return pd.DataFrame()
    frames = [samples_of(session, coin, end_ms - SLIPPAGE_DAYS * DAY, end_ms) for coin in coins]
    return joined(frames, coin=", ".join(coins))


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
