"""The frames of a wallet report: everything fetched once, for one account and period."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pandas as pd

from toolkit.client import Session
from toolkit.contract.dexes import coin_dex
from toolkit.fetch.accounts import (
    AccountStates,
    batch_clearinghouse_states,
    user_non_funding_ledger_updates,
)
from toolkit.fetch.fills import user_fills_by_time
from toolkit.fetch.market import meta
from toolkit.fetch.markets import with_readable_coins
from toolkit.reports.report_frames import (
    concat_frames,
    fetch_funding,
    fetch_latest_fills,
    fetch_optional,
    fetch_required,
    fetch_samples,
    is_perp,
    list_builders,
)
from toolkit.times import DAY, Time, to_ms

_SLIPPAGE_COINS: Final = 3  # the coins with the largest volume
_SLIPPAGE_DAYS: Final = 30
STATES: Final = "account value"
"""Name of the account states among the missing data."""


@dataclass(frozen=True, slots=True)
class WalletFrames:
    """The fetched frames of a wallet report, money in exact decimals.

    - ``user``: address of the account
    - ``start_ms``, ``end_ms``: the period, both ends inclusive
    - ``fills``, ``ledger``: all fills and ledger updates of the period
    - ``funding``: funding rows while a builder was approved; None if no builder is known
    - ``builders``: builders whose funding rows were requested
    - ``perps``: metadata of the dexes on which the account traded
    - ``slippage``: samples of the coins with the largest volume, all sizes
    - ``states``: account values and open positions on all dexes; None if the period ends before now
    - ``latest``: the latest fills, which name their builder; None if builders were chosen
    - ``source``: label of the source
    - ``simulated``: whether the source is simulated
    - ``missing_reasons``: data that the source, such as an archive, does not have -> the reason
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
    latest: pd.DataFrame | None
    source: str
    simulated: bool
    missing_reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows of the account in this period."""
        has_funding = self.funding is not None and len(self.funding) > 0
        return not (len(self.fills) or len(self.ledger) or has_funding)


def fetch_wallet(
    session: Session,
    user: str,
    start: Time,
    end: Time | None,
    builders: Sequence[str] | None,
    *,
    with_slippage: bool = True,
) -> WalletFrames:
    """Fetch everything that a wallet report shows; slippage samples only on request."""
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    period: dict[str, Any] = {
        "start": start_ms,
        "end": end_ms,
        "numbers": "exact",
        "session": session,
    }
    fills, ledger, native_perps = fetch_required(
        session,
        {
            f"userFillsByTime --user {user}": partial(user_fills_by_time, user, **period),
            f"userNonFundingLedgerUpdates --user {user}": partial(
                user_non_funding_ledger_updates, user, **period
            ),
            "meta": partial(meta, session=session),
        },
    )
    fills = with_readable_coins(fills, session)
    latest = fetch_latest_fills(session, user)
    chosen = tuple(builders) if builders is not None else list_builders(session, latest)
    missing_reasons: dict[str, str] = {}
    return WalletFrames(
        user=user,
        start_ms=start_ms,
        end_ms=end_ms,
        fills=fills,
        ledger=ledger,
        funding=fetch_funding(session, user, chosen, start_ms, end_ms, missing_reasons),
        builders=chosen,
        perps=_fetch_perps(session, fills, native_perps),
        slippage=_fetch_slippage(session, fills, end_ms, missing_reasons)
        if with_slippage
        else pd.DataFrame(),
        states=_fetch_states(session, user, missing_reasons) if end_ms >= now else None,
        latest=latest,
        source=session.label,
        simulated=session.simulated,
        missing_reasons=missing_reasons,
    )


def _fetch_perps(session: Session, fills: pd.DataFrame, native: pd.DataFrame) -> pd.DataFrame:
    coins = fills["coin"][is_perp(fills["coin"])].unique()
    others = sorted({coin_dex(coin) for coin in coins} - {""})
    frames = {"": native} | {dex: meta(dex=dex, session=session) for dex in others}
    return concat_frames(frames, "dex")


def _fetch_slippage(
    session: Session, fills: pd.DataFrame, end_ms: int, missing_reasons: dict[str, str]
) -> pd.DataFrame:
    """Return samples of the coins with the largest volume, over the last days of the period."""
    volume = fills["px"].astype("float64") * fills["sz"].astype("float64")
    perps = is_perp(fills["coin"])
    sums = volume[perps].groupby(fills["coin"][perps]).sum()
    coins = sums.sort_values(ascending=False, kind="stable").index[:_SLIPPAGE_COINS]
    fetch = partial(fetch_samples, session, start_ms=end_ms - _SLIPPAGE_DAYS * DAY, end_ms=end_ms)
    answers = {
        coin: fetch_optional(missing_reasons, f"slippage of {coin}", fetch, coin) for coin in coins
    }
    frames = {coin: samples for coin, samples in answers.items() if samples is not None}
    return concat_frames(frames, "coin") if frames else pd.DataFrame()


def _fetch_states(
    session: Session, user: str, missing_reasons: dict[str, str]
) -> AccountStates | None:
    """Return the account's states on every dex; None if they cannot be fetched."""
    fetch = partial(batch_clearinghouse_states, dex="ALL_DEXES", numbers="exact", session=session)
    states = fetch_optional(missing_reasons, STATES, fetch, [user])
    return None if states is None or len(states.failed) or states.accounts.empty else states
