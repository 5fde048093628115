"""Answers about markets and auctions. Specification, "Market data", "Deploy auction status"."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any, Final

import msgspec
import zstandard
from msgspec.structs import replace

from toolkit.contract import records
from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, coin_dex, strip_native_dex
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.requests import INTERVALS
from toolkit.contract.source_tables import Auction
from toolkit.errors import BadRequest, ServiceDown
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.service import trade_totals
from toolkit.service.decimals import format_decimal
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store, json_array
from toolkit.times import HOUR, MINUTE, SECOND

_MOST_LEVELS: Final = 20
"""The number of levels on each side of a book that the exchange shows."""


def current_depth(store: Store, request: CheckedRequest) -> bytes:
    """Return the depth of all markets, or of the markets of a dex."""
    text = request.find_document(store, "depth time")
    if text is None:
        raise ServiceDown("An internal error occurred")
    # Depth is computed every second, so on a running clock the latest one is never older.
    computed_at = int(text)
    time = computed_at + (request.now_ms - computed_at) // SECOND * SECOND
    if request["dex"] is None:
        markets = request.find_document(store, "depth")
    else:
        markets = request.find_document(store, "depth of", canonical_dex(request["dex"]))
    return b'{"timestampMs":%d,"data":%b}' % (time, markets or b"[]")


def meta_and_asset_ctxs(store: Store, request: CheckedRequest) -> bytes:
    """Return the perps of a dex with the states of their markets; an unknown dex has none."""
    text = store.document("contexts", canonical_dex(request["dex"]))
    if text is None and not store.about["whole"]:
        # Recordings have the perps, but not the states of their markets.
        raise BadRequest(
            f"metaAndAssetCtxs cannot be answered: no such data in {store.about['label']}"
        )
    return text or b'[{"universe":[]},[]]'


def predicted_fundings(store: Store, request: CheckedRequest) -> bytes:
    """Return the rate of each perp for the current hour; other venues are not simulated."""
    # ASSUMED: `predictedFundings` has the native perps that are not delisted, with the funding rate
    # of their market state. This exchange is `HlPerp`, and a venue without the coin has null.
    text = store.document("contexts", "") or b'[{"universe":[]},[]]'
    meta, contexts = msgspec.json.decode(text, type=tuple[records.Meta, list[records.AssetContext]])
    next_hour = (request.now_ms // HOUR + 1) * HOUR
    rows = []
    for asset, context in zip(meta.universe, contexts, strict=True):
        if asset.is_delisted is not True:
            own = records.PredictedFunding(
                funding_rate=context.funding, next_funding_time=next_hour, funding_interval_hours=1
            )
            rows.append((asset.name, [("BinPerp", None), ("HlPerp", own), ("BybitPerp", None)]))
    return encode(rows)


def slippage_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the samples in a time range, oldest first."""
    texts = store.select_texts(
        "slippage",
        "SELECT row FROM slippage WHERE coin = ? AND amount = ? AND time BETWEEN ? AND ? "
        "ORDER BY time LIMIT ?",
        *(strip_native_dex(request["coin"]), request["amount"]),
        *(request["start"], request.end, request["page_size"]),
    )
    return json_array(texts)


def funding_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the funding rates of a coin in a time range, oldest first."""
    # ASSUMED: In the local service, `fundingHistory` returns all rows. The exchange's own API
    # returns at most 500.
    text = store.compressed_document("funding rates", strip_native_dex(request["coin"])) or b"[]"
    rates = msgspec.json.decode(text, type=list[records.FundingRate])
    return encode([rate for rate in rates if request["start"] <= rate.time <= request.end])


def candles(store: Store, request: CheckedRequest) -> bytes:
    """Return the candles of a coin in a time range, oldest first."""
    coin, interval = strip_native_dex(request["coin"]), request["interval"]
    is_short = INTERVALS[interval] < MINUTE
    minutes = _read_seconds(store, request, coin) if is_short else _read_minutes(store, coin)
    span = SECOND if is_short else MINUTE
    start = request["start"]
    if reach := request.operation.reach:
        newest = trade_totals.interval_begin(request.now_ms, interval)
        start = max(start, newest - (reach - 1) * INTERVALS[interval])
    return encode(trade_totals.make_candles(minutes, coin, interval, start, request.end, span))


def open_interest_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the open interest of a perp in a time range, oldest first, from the fills of all."""
    if request["sector"] is not None:
        raise BadRequest(f"no market of the sector {request['sector'][:80]} is known here")
    coin, changes = strip_native_dex(request["coin"]), defaultdict[int, Decimal](Decimal)
    for part in _read_parts(store, "interest", coin, dict[int, Decimal]):
        for minute, change in part.items():
            changes[minute] += change
    start, end = request["start"], min(request.end, request.now_ms)
    rows = trade_totals.open_interest(
        changes, _read_minutes(store, coin), request["interval"], start, end
    )
    return encode(rows)


def _read_parts(store: Store, table: str, coin: str, kind: Any) -> Iterator[Any]:
    """Yield the totals of a coin, of each part of the sources."""
    sql = f"SELECT data FROM {table} WHERE coin = ? ORDER BY part"
    for (data,) in store.select_rows(sql, coin):
        yield msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data), type=kind)


def _read_minutes(store: Store, coin: str) -> Iterator[trade_totals.MinuteCandle]:
    for part in _read_parts(store, "minutes", coin, list[trade_totals.MinuteCandle]):
        yield from part


def _read_seconds(
    store: Store, request: CheckedRequest, coin: str
) -> Iterable[trade_totals.MinuteCandle]:
    """Return the trades of a coin by the second; they are not counted in advance."""
    begin, end = (
        trade_totals.interval_begin(time, request["interval"])
        for time in (request["start"], request.end)
    )
    rows = store.iterate_rows(
        "SELECT fill.row FROM account CROSS JOIN fill ON account = id "
        "WHERE time BETWEEN ? AND ? AND dex = ?",
        *(begin, trade_totals.interval_end(end, request["interval"]), coin_dex(coin)),
    )
    fills = [
        fill
        for batch in request.read_batches(rows)
        for text in store.row_texts("fill", [row for (row,) in batch])
        if (fill := read_record(records.Fill, text)).coin == coin
    ]
    fills.sort(key=lambda fill: (fill.time, fill.tx_index or 0))
    totals = trade_totals.TradeTotals(SECOND)
    for _ in totals.count_fills(("", fill) for fill in fills):
        pass
    return totals.minutes[coin].values()


def l2_book(store: Store, request: CheckedRequest) -> bytes:
    """Return the book of a coin at the end of the history, also while the clock runs.

    The book of a spot market is empty. A coin without a book has null.
    """
    coin = strip_native_dex(request["coin"])
    text = store.document("book", coin)
    if text is not None:
        book = msgspec.json.decode(text, type=records.L2Book)
        book = group_levels(book, request["n_sig_figs"], request["mantissa"])
        best = [levels[:_MOST_LEVELS] for levels in book.levels]
        return encode(replace(book, levels=best))
    if not store.about["whole"]:
        raise BadRequest(
            f"l2Book cannot be answered: {store.about['label']} has no book of {coin[:80]}"
        )
    # ASSUMED: For a delisted or unknown coin, `l2Book` returns null, not an error.
    if coin not in msgspec.json.decode(store.document("mids") or b"{}"):
        return b"null"
    return encode(records.L2Book(coin=coin, time=request.now_ms, levels=[[], []]))


def group_levels(book: records.L2Book, digits: int | None, mantissa: int | None) -> records.L2Book:
    """Return a book with rounded prices; levels with the same price become one.

    Parameters
    ----------
    book : records.L2Book
        All levels, bids first, best price first.
    digits : int or None
        Significant digits of a price; None does not round.
    mantissa : int or None
        The last digit is a multiple of it; None means 1.

    Returns
    -------
    records.L2Book
        Bids are rounded down and asks up, so no price is better than a real one.

    Examples
    --------
    >>> best = records.BookLevel(px="99.96", sz="1.5", orders=1)
    >>> second = records.BookLevel(px="99.91", sz="2", orders=3)
    >>> book = group_levels(records.L2Book(coin="X", time=0, levels=[[best, second], []]), 3, None)
    >>> [(level.px, level.sz, level.orders) for level in book.levels[0]]
    [('99.9', '3.5', 4)]
    """
    if digits is None:
        return book
    sides = []
    for levels, rounding in zip(book.levels, (ROUND_FLOOR, ROUND_CEILING), strict=True):
        sizes, orders = defaultdict[Decimal, Decimal](Decimal), Counter[Decimal]()
        for level in levels:
            price = Decimal(level.px)
            step = Decimal(mantissa or 1).scaleb(price.adjusted() + 1 - digits)
            rounded = (price / step).to_integral_value(rounding=rounding) * step
            sizes[rounded] += Decimal(level.sz)
            orders[rounded] += level.orders
        sides.append(
            [
                records.BookLevel(px=format_decimal(px), sz=format_decimal(sz), orders=orders[px])
                for px, sz in sizes.items()
            ]
        )
    return replace(book, levels=sides)


def exchange_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the present of the exchange; it never has a special status."""
    return b'{"time":%d,"specialStatuses":null}' % request.now_ms


def spot_pair_deploy_auction_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of the auction for deploying a spot pair."""
    return _latest_status(store, request, "spot")


def perp_deploy_auction_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of the auction for deploying a perp."""
    return _latest_status(store, request, "perp")


def spot_deploy_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the auction for deploying spot tokens; no user deploys a token here."""
    return b'{"states":[],"gasAuction":%b}' % _latest_status(store, request, "spot")


def auction_status(auction: Auction, now_seconds: int) -> records.AuctionStatus:
    """Return the state of an auction at a time.

    Examples
    --------
    >>> auction_status(Auction("perp", 1000, 100, "600", "500"), 1025).current_gas
    '575.0'
    """
    end = auction.end_seconds
    is_bought = end is not None and end <= now_seconds
    elapsed = min(now_seconds - auction.start_seconds, auction.duration_seconds)
    is_over = is_bought or elapsed == auction.duration_seconds
    start, floor = Fraction(auction.start_gas), Fraction(auction.floor_gas)
    exact_price = auction_price(start, floor, elapsed, auction.duration_seconds)
    price = format_decimal(Decimal(exact_price).scaleb(-GAS_DECIMALS))
    end_gas = auction.end_gas if is_bought else price
    # ASSUMED: The `currentGas` of an ended spot auction is the price at its end.
    current = price if not is_over else end_gas if auction.kind == "spot" else None
    return records.AuctionStatus(
        start_time_seconds=auction.start_seconds,
        duration_seconds=auction.duration_seconds,
        start_gas=auction.start_gas,
        current_gas=current,
        end_gas=end_gas if is_over else None,
    )


def _latest_status(store: Store, request: CheckedRequest, kind: str) -> bytes:
    text = request.find_document(store, "auctions", kind)
    auctions = msgspec.json.decode(text, type=list[Auction]) if text else []
    started = [auction for auction in auctions if auction.start_seconds * 1000 <= request.now_ms]
    if not started:
        # ASSUMED: If there is no auction, the status is 500, the same as for `currentDepth` before
        # its first sample.
        raise ServiceDown("An internal error occurred")
    latest = max(started, key=lambda auction: auction.start_seconds)
    return encode(auction_status(latest, request.now_ms // 1000))
