"""Documents: finished texts that the service sends without reading rows.

A document has a kind and a key, for example a state and its account.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
import zstandard

from toolkit.contract import records, source_tables
from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, dex_name_in
from toolkit.contract.snapshots import pack
from toolkit.contract.source_tables import Sources
from toolkit.rules.staking import apr
from toolkit.service.decimals import format_decimal
from toolkit.service.open_orders import OrderTracker
from toolkit.service.trade_totals import TradeTotals
from toolkit.times import DAY, week_begin

Document = tuple[str, str, bytes]
"""Kind, key, text."""

LastState = tuple[
    records.Depth,
    source_tables.AccountSnapshot,
    source_tables.TwapSnapshot,
    list[source_tables.Auction],
]
"""The state at the end of the history, from which a running clock goes on."""

_MODES: Final = ("default", "dexAbstraction", "unifiedAccount", "portfolioMargin")
"""The account modes of snapshots, with their names in `userAbstraction`."""

_TABLES: Final = {
    "meta": "metas",
    "limits": "limits",
    "borrow lend": "borrow_lend",
    "delegations": "delegations",
}
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
"""Kind of document -> the table of `Sources` with an entry per account, dex or coin."""


def usual_documents(sources: Sources) -> Iterator[Document]:
    """Yield the stored entries (kind, key, JSON text) for the specified operations."""
    dexes = list(dict.fromkeys(["", *sources.metas, *sources.states]))  # the native one first
    yield "dexes", "", encode(dexes)
    for kind, name in _TABLES.items():
        for key, entry in getattr(sources, name).items():
            yield kind, key, encode(entry)
    for dex in sources.contexts.keys() & sources.metas.keys():
        yield "contexts", dex, encode([sources.metas[dex], list(sources.contexts[dex])])
    if sources.depth is not None:
        yield from depth_documents(sources.depth)
    yield from auction_documents(sources.auctions)
    for dex, states in sources.states.items():
        for user, state in states.items():
            yield "state", state_key(dex, user), encode(state)
    for user in sources.unavailable:
        yield "unavailable", user, b"null"
    for validator, weeks in weekly_aprs(sources.rewards).items():
        yield "weeks", validator, encode(weeks)
    values = _latest_snapshot(sources.account_snapshots, sources.now_ms)
    twaps = _latest_snapshot(sources.twap_snapshots, sources.now_ms)
    yield from () if values is None else account_value_documents(values)
    yield from () if twaps is None else twap_documents(twaps)
    if values and twaps and sources.depth is not None:
        last: LastState = (sources.depth, values, twaps, [*sources.auctions])
        yield "last state", "", zstandard.compress(msgspec.msgpack.encode(last))


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
        yield "spot meta", "", encode(sources.spot_meta)
        yield "spot contexts", "", encode([sources.spot_meta, list(sources.spot_contexts)])
    if sources.outcome_meta is not None:
        yield "outcome meta", "", encode(sources.outcome_meta)
    if sources.perp_dexes:
        yield "perp dexes", "", encode([None, *sources.perp_dexes])
    compress = zstandard.ZstdCompressor(level=3).compress
    for coin, rates in sources.funding_rates.items():
        yield "funding rates", coin, compress(encode(list(rates)))
    for user, valuations in sources.valuations.items():
        values = [(v.time, v.account_value, v.pnl, v.perp_value, v.perp_pnl) for v in valuations]
        yield "valuations", user, compress(encode(values))
    for dex in sources.contexts.keys() & sources.metas.keys():
        pairs = zip(sources.metas[dex].universe, sources.contexts[dex], strict=False)
        mids = {asset.name: context.mid_px for asset, context in pairs}
        if not dex:  # spot markets belong to the native dex
            mids |= {context.coin: context.mid_px for context in sources.spot_contexts}
        yield "mids", dex, encode({coin: mid for coin, mid in mids.items() if mid is not None})
    fees, latest = totals.builder_fees, _latest_snapshot(sources.account_snapshots, sources.now_ms)
    tables = {kind: getattr(sources, name) for kind, name in _EXTRA_TABLES.items()} | {
        "open orders": open_orders.by_user(),
        "requests": open_orders.requests,
        "builder fees": {builder: str(fee) for builder, fee in fees.items()},
        "mode": {
            row.user: _MODES[row.account_mode]
            for rows in (latest.values.values() if latest else ())
            for row in rows
            if 0 < row.account_mode < len(_MODES)
        },
    }
    for kind, table in tables.items():
        for key, entry in table.items():
            yield kind, key, encode(entry)


def state_key(dex: str, user: str) -> str:
    """Return the key of the state of an account on a dex."""
    return f"{dex} {user}"


def depth_documents(depth: records.Depth) -> Iterator[Document]:
    """Yield the documents of the depth: its time, all markets, and the markets of each dex."""
    by_dex = defaultdict(list)
    for market in depth.data:
        by_dex[canonical_dex(market.dex)].append(market)
    yield "depth time", "", encode(depth.timestamp_ms)
    yield "depth", "", encode([market for markets in by_dex.values() for market in markets])
    for dex, markets in by_dex.items():
        yield "depth of", dex, encode(markets)


def auction_documents(auctions: Sequence[source_tables.Auction]) -> Iterator[Document]:
    """Yield a document for each kind of auction."""
    by_kind = defaultdict(list)
    for auction in auctions:
        by_kind[auction.kind].append(auction)
    for kind, same_kind in by_kind.items():
        yield "auctions", kind, encode(same_kind)


def _latest_snapshot(snapshots: Sequence[Any], now_ms: int) -> Any:
    past = [snapshot for snapshot in snapshots if snapshot.time <= now_ms]
    return max(past, key=lambda snapshot: snapshot.time, default=None)


def _snapshot_metadata(snapshot_id: str, time: int) -> bytes:
    return encode(records.SnapshotMetadata(snapshot_id=snapshot_id, timestamp=time // 1000))


def account_value_documents(snapshot: source_tables.AccountSnapshot) -> Iterator[Document]:
    """Yield the documents of a snapshot of account values: its metadata, and one per token."""
    yield "account values at", "", _snapshot_metadata(snapshot.snapshot_id, snapshot.time)
    for (dex, token), rows in snapshot.values.items():
        users = {}
        for row in rows:
            _, _, user, *numbers, ratio, branches, total = msgspec.structs.astuple(row)
            if ratio is not None:
                pairs = [(branch.token, branch.available) for branch in branches or ()]
                numbers += ratio, pairs, total
            users[user] = tuple(numbers)
        # Known of the live service: docs/live_service.md, section 8.
        name = f"{dex_name_in('rows', dex)}:{token}"
        packed = pack(snapshot.snapshot_id, name, users)
        yield "account values", f"{canonical_dex(dex)}:{token}", packed


def twap_documents(snapshot: source_tables.TwapSnapshot) -> Iterator[Document]:
    """Yield the documents of a snapshot of TWAPs: its metadata, and one per market."""
    yield "twaps at", "", _snapshot_metadata(snapshot.snapshot_id, snapshot.time)
    for market, rows in sorted(snapshot.twaps.items()):
        tuples = [msgspec.structs.astuple(row)[2:] for row in rows]
        yield "twaps", market, pack(snapshot.snapshot_id, market, tuples)


def weekly_aprs(
    rewards: Iterable[source_tables.DailyReward],
) -> dict[str, list[records.ValidatorWeek]]:
    """Return the weekly APRs of each validator, newest first.

    Net APR is the sum of delegation rewards over the sum of stakes, times 365. Gross APR includes
    the commission. Neither is compounded. Specification, "Validator weekly APR entry".

    Examples
    --------
    >>> reward = source_tables.DailyReward("0xv", 1759104000000, "36500", "9", "1")
    >>> [week] = weekly_aprs([reward])["0xv"]
    >>> week.net_apr, week.gross_apr
    (0.09, 0.1)
    """
    by_week: dict[str, dict[int, list[source_tables.DailyReward]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for reward in rewards:
        # ASSUMED: A distribution of staking rewards at 00:00 UTC belongs to the day and the week
        # that end at this time.
        by_week[reward.validator][week_begin(reward.time - DAY)].append(reward)
    aprs = defaultdict(list)
    for validator, weeks in by_week.items():
        for week, days in sorted(weeks.items(), reverse=True):
            staked = sum(Decimal(day.staked) for day in days)
            net = sum((Decimal(day.delegator_rewards) for day in days), Decimal(0))
            gross = net + sum(Decimal(day.commission) for day in days)
            aprs[validator].append(
                records.ValidatorWeek(
                    week=week,
                    net_apr=float(apr(net, staked)) if staked else 0.0,
                    gross_apr=float(apr(gross, staked)) if staked else 0.0,
                    total_delegator_rewards=format_decimal(net),
                )
            )
    return aprs
