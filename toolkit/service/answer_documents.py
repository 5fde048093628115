"""Documents: finished texts that the service sends without reading rows.

A document has a kind and a key, for example a state and its account.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

import msgspec
import zstandard

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, dex_name_in
from toolkit.contract.records import (
    AccountValueRow,
    AssetContext,
    Depth,
    Meta,
    SnapshotMetadata,
    TwapRow,
    ValidatorWeek,
)
from toolkit.contract.snapshots import WireAccountSnapshot, WireTwapSnapshot, pack
from toolkit.contract.source_tables import AccountSnapshot, Auction, DailyReward, Sources
from toolkit.contract.source_tables import TwapSnapshot as SourceTwaps
from toolkit.rules.staking import apr
from toolkit.service.decimals import format_decimal
from toolkit.service.open_orders import OrderTracker
from toolkit.service.trade_totals import TradeTotals
from toolkit.times import DAY, week_begin

Document = tuple[str, str, bytes]
"""Kind, key, text."""

_TWAP_COLUMNS: Final = tuple(field.name for field in msgspec.structs.fields(TwapRow))[2:]

_MODES: Final = ("default", "dexAbstraction", "unifiedAccount", "portfolioMargin")
"""The account modes of snapshots, with their names in `userAbstraction`."""

_EXTRA_TABLES: Final = {
    "interest": "lend_interest",
    "spot state": "spot_states",
    "stake": "stakes",
    "stake events": "stake_events",
    "stake rewards": "stake_rewards",
    "vault equities": "vault_equities",
    "sub-accounts": "sub_accounts",
    "role": "roles",
    "fees": "fees",
    "book": "books",
}
"""Kind of document -> the table of `Sources` with an entry per account or coin."""


def usual_documents(sources: Sources) -> Iterator[Document]:
    """Yield the stored entries (kind, key, JSON text) for the specified operations."""
    dexes = list(dict.fromkeys(["", *sources.metas, *sources.states]))  # the native one first
    yield "dexes", "", encode(dexes)
    for dex, meta in sources.metas.items():
        yield "meta", dex, encode(meta)
        if dex in sources.contexts:
            yield "contexts", dex, encode([meta, list(sources.contexts[dex])])
    for dex, limits in sources.limits.items():
        yield "limits", dex, encode(limits)
    if sources.depth is not None:
        yield from depth_documents(sources.depth)
    yield from auction_documents(sources.auctions)
    yield from _account_documents(sources)
    for validator, weeks in weekly_aprs(sources.rewards).items():
        yield "weeks", validator, encode(weeks)
    if (values := _latest_snapshot(sources.account_snapshots, sources.now_ms)) is not None:
        yield from account_value_documents(values)
    if (twaps := _latest_snapshot(sources.twap_snapshots, sources.now_ms)) is not None:
        yield from twap_documents(twaps)


def extra_documents(
    sources: Sources, totals: TradeTotals, open_orders: OrderTracker
) -> Iterator[Document]:
    """Yield the documents of the operations beyond the specification.

    Parameters
    ----------
    sources : Sources
        The tables.
    totals, open_orders : TradeTotals, OrderTracker
        Counted while fills and status events were written into the store.
    """
    if sources.spot_meta is not None:
        contexts = list(sources.spot_contexts)
        yield "spot meta", "", encode(sources.spot_meta)
        yield "spot contexts", "", encode([sources.spot_meta, contexts])
    if sources.outcome_meta is not None:
        yield "outcome meta", "", encode(sources.outcome_meta)
    if sources.perp_dexes:
        yield "perp dexes", "", encode([None, *sources.perp_dexes])
    for dex, meta in sources.metas.items():
        if dex in sources.contexts:
            yield "mids", dex, encode(_mid_prices(sources, dex, meta))
    compress = zstandard.ZstdCompressor(level=3).compress
    for coin, rates in sources.funding_rates.items():
        yield "funding rates", coin, compress(encode(list(rates)))
    for user, valuations in sources.valuations.items():
        rows = [(v.time, v.account_value, v.pnl, v.perp_value, v.perp_pnl) for v in valuations]
        yield "valuations", user, compress(encode(rows))
    for kind, name in _EXTRA_TABLES.items():
        table: Mapping[str, Any] = getattr(sources, name)
        for key, entry in table.items():
            yield kind, key, encode(entry)
    for user, orders in open_orders.by_user().items():
        yield "open orders", user, encode(orders)
    for user, requests in open_orders.requests.items():
        yield "requests", user, encode(requests)
    for builder, fees in totals.builder_fees.items():
        yield "builder fees", builder, encode(str(fees))
    yield from _mode_documents(sources)


def state_key(dex: str, user: str) -> str:
    """Return the key of the state of an account on a dex."""
    return f"{dex} {user}"


def depth_documents(depth: Depth) -> Iterator[Document]:
    """Yield the documents of the depth: its time, all markets, and the markets of each dex."""
    by_dex = defaultdict(list)
    for market in depth.data:
        by_dex[canonical_dex(market.dex)].append(market)
    yield "depth time", "", encode(depth.timestamp_ms)
    yield "depth", "", encode([market for markets in by_dex.values() for market in markets])
    for dex, markets in by_dex.items():
        yield "depth of", dex, encode(markets)


def auction_documents(auctions: Sequence[Auction]) -> Iterator[Document]:
    """Yield a document for each kind of auction."""
    by_kind = defaultdict(list)
    for auction in auctions:
        by_kind[auction.kind].append(auction)
    for kind, same_kind in by_kind.items():
        yield "auctions", kind, encode(same_kind)


def _account_documents(sources: Sources) -> Iterator[Document]:
    for dex, states in sources.states.items():
        for user, state in states.items():
            yield "state", state_key(dex, user), encode(state)
    for user in sources.unavailable:
        yield "unavailable", user, b"null"
    for user, loans in sources.borrow_lend.items():
        yield "borrow lend", user, encode(loans)
    for user, delegations in sources.delegations.items():
        yield "delegations", user, encode(list(delegations))


def _latest_snapshot(snapshots: Sequence[Any], now_ms: int) -> Any:
    past = [snapshot for snapshot in snapshots if snapshot.time <= now_ms]
    return max(past, key=lambda snapshot: snapshot.time, default=None)


def _snapshot_metadata(snapshot: AccountSnapshot | SourceTwaps) -> bytes:
    return encode(
        SnapshotMetadata(snapshot_id=snapshot.snapshot_id, timestamp=snapshot.time // 1000)
    )


def account_value_documents(snapshot: AccountSnapshot) -> Iterator[Document]:
    """Yield the documents of a snapshot of account values: its metadata, and one per token."""
    yield "account values at", "", _snapshot_metadata(snapshot)
    for (dex, token), rows in snapshot.values.items():
        # Known of the live service: docs/live_service.md, section 8.
        name = f"{dex_name_in('rows', dex)}:{token}"
        users = {row.user: _account_tuple(row) for row in rows}
        packed = pack(WireAccountSnapshot(snapshot.snapshot_id, name, users))
        yield "account values", f"{canonical_dex(dex)}:{token}", packed


def _account_tuple(row: AccountValueRow) -> tuple[Any, ...]:
    usual = (
        row.account_value,
        row.total_long_notional,
        row.total_short_notional,
        row.is_unified,
        row.account_mode,
    )
    if row.pm_ratio is None:
        return usual
    branches = [(branch.token, branch.available) for branch in row.pm_avail_by_branch or ()]
    return *usual, row.pm_ratio, branches, row.pm_total_account_value


def twap_documents(snapshot: SourceTwaps) -> Iterator[Document]:
    """Yield the documents of a snapshot of TWAPs: its metadata, and one per market."""
    yield "twaps at", "", _snapshot_metadata(snapshot)
    twaps: Mapping[str, Sequence[TwapRow]] = snapshot.twaps
    for market, rows in twaps.items():
        tuples = [tuple(getattr(row, name) for name in _TWAP_COLUMNS) for row in rows]
        yield "twaps", market, pack(WireTwapSnapshot(snapshot.snapshot_id, market, tuples))


def _mid_prices(sources: Sources, dex: str, meta: Meta) -> dict[str, str]:
    """Return the mid price of every market of a dex; spot markets belong to the native dex."""
    contexts: list[AssetContext] = list(sources.contexts[dex])
    pairs = zip_longest(meta.universe, contexts)
    mids = {asset.name: context.mid_px for asset, context in pairs if asset and context}
    if not dex:
        mids |= {context.coin: context.mid_px for context in sources.spot_contexts}
    return {coin: mid for coin, mid in mids.items() if mid is not None}


def _mode_documents(sources: Sources) -> Iterator[Document]:
    """Yield the account modes of the latest snapshot."""
    latest = _latest_snapshot(sources.account_snapshots, sources.now_ms)
    for rows in latest.values.values() if latest else ():
        for row in rows:
            if 0 < row.account_mode < len(_MODES):
                yield "mode", row.user, encode(_MODES[row.account_mode])


def weekly_aprs(rewards: Iterable[DailyReward]) -> dict[str, list[ValidatorWeek]]:
    """Return the weekly APRs of each validator, newest first.

    Net APR is the sum of delegation rewards over the sum of stakes, times 365. Gross APR includes
    the commission. Neither is compounded. Specification, "Validator weekly APR entry".

    Examples
    --------
    >>> reward = DailyReward("0xv", 1759104000000, "36500", "9", "1")
    >>> [week] = weekly_aprs([reward])["0xv"]
    >>> week.net_apr, week.gross_apr
    (0.09, 0.1)
    """
    by_week: dict[str, dict[int, list[DailyReward]]] = defaultdict(lambda: defaultdict(list))
    for reward in rewards:
        # ASSUMED: A distribution of staking rewards at 00:00 UTC belongs to the day and the week
        # that end at this time.
        by_week[reward.validator][week_begin(reward.time - DAY)].append(reward)
    return {
        validator: [_validator_week(week, days[week]) for week in sorted(days, reverse=True)]
        for validator, days in by_week.items()
    }


def _validator_week(week: int, days: list[DailyReward]) -> ValidatorWeek:
    staked = sum(Decimal(day.staked) for day in days)
    net = sum((Decimal(day.delegator_rewards) for day in days), Decimal(0))
    gross = net + sum(Decimal(day.commission) for day in days)
    return ValidatorWeek(
        week=week,
        net_apr=float(apr(net, staked)) if staked else 0.0,
        gross_apr=float(apr(gross, staked)) if staked else 0.0,
        total_delegator_rewards=format_decimal(net),
    )
