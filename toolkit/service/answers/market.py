"""Answers about markets. Specification, "Market data"."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

import msgspec
import zstandard
from msgspec.structs import replace

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, coin_dex, strip_native_dex
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import (
    AssetContext,
    BookLevel,
    Fill,
    FundingRate,
    L2Book,
    Meta,
    PredictedFunding,
)
from toolkit.contract.requests import INTERVALS
from toolkit.errors import BadRequest, ServiceDown
from toolkit.service.decimals import format_decimal
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store
from toolkit.service.trade_totals import (
    MinuteCandle,
    TradeTotals,
    interval_begin,
    interval_end,
    make_candles,
    open_interest,
)
from toolkit.times import HOUR, MINUTE, SECOND

_MOST_LEVELS: Final = 20
"""The number of levels on each side of a book that the exchange shows."""

_decode_changes = msgspec.msgpack.Decoder(dict[int, Decimal]).decode
_decode_minutes = msgspec.msgpack.Decoder(list[MinuteCandle]).decode


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
    if text is None and not store.about["whole"] and not store.about["partial"]:
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
    meta, contexts = msgspec.json.decode(text, type=tuple[Meta, list[AssetContext]])
    next_hour = (request.now_ms // HOUR + 1) * HOUR
    return encode(
        [
            (
                asset.name,
                [
                    ("BinPerp", None),
                    (
                        "HlPerp",
                        PredictedFunding(
                            funding_rate=context.funding,
                            next_funding_time=next_hour,
                            funding_interval_hours=1,
                        ),
                    ),
                    ("BybitPerp", None),
                ],
            )
            for asset, context in zip(meta.universe, contexts, strict=True)
            if asset.is_delisted is not True
        ]
    )


def slippage_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the samples in a time range, oldest first."""
    return store.select_texts(
        "slippage",
        "SELECT row FROM slippage WHERE coin = ? AND amount = ? AND time BETWEEN ? AND ? "
        "ORDER BY time LIMIT ?",
        strip_native_dex(request["coin"]),
        request["amount"],
        request["start"],
        request.end,
        request["page_size"],
    )


def funding_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the funding rates of a coin in a time range, oldest first."""
    # ASSUMED: In the local service, `fundingHistory` returns all rows. The exchange's own API
    # returns at most 500.
    text = store.compressed_document("funding rates", strip_native_dex(request["coin"])) or b"[]"
    rates = msgspec.json.decode(text, type=list[FundingRate])
    return encode([rate for rate in rates if request["start"] <= rate.time <= request.end])


def candles(store: Store, request: CheckedRequest) -> bytes:
    """Return the candles of a coin in a time range, oldest first."""
    coin, interval = strip_native_dex(request["coin"]), request["interval"]
    is_short = INTERVALS[interval] < MINUTE
    minutes = _read_seconds(store, request, coin) if is_short else _read_minutes(store, coin)
    span = SECOND if is_short else MINUTE
    start = request["start"]
    if reach := request.operation.reach:
        newest = interval_begin(request.now_ms, interval)
        start = max(start, newest - (reach - 1) * INTERVALS[interval])
    return encode(make_candles(minutes, coin, interval, start, request.end, span))


def open_interest_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the open interest of a perp in a time range, oldest first, from the fills of all."""
    if request["sector"] is not None:
        raise BadRequest(f"no market of the sector {request['sector'][:80]} is known here")
    coin, changes = strip_native_dex(request["coin"]), defaultdict[int, Decimal](Decimal)
    for (data,) in store.select_rows("SELECT data FROM interest WHERE coin = ?", coin):
        part = _decode_changes(zstandard.ZstdDecompressor().decompress(data))
        for minute, change in part.items():
            changes[minute] += change
    minutes = _read_minutes(store, coin)
    end = min(request.end, request.now_ms)
    return encode(open_interest(changes, minutes, request["interval"], request["start"], end))


def _read_minutes(store: Store, coin: str) -> Iterator[MinuteCandle]:
    decompress = zstandard.ZstdDecompressor().decompress
    sql = "SELECT data FROM minutes WHERE coin = ? ORDER BY part"
    for (data,) in store.select_rows(sql, coin):
        yield from _decode_minutes(decompress(data))


def _read_seconds(store: Store, request: CheckedRequest, coin: str) -> Iterable[MinuteCandle]:
    """Return the trades of a coin by the second; they are not counted in advance."""
    rows = store.iterate_rows(
        "SELECT fill.row FROM account CROSS JOIN fill ON account = id "
        "WHERE time BETWEEN ? AND ? AND dex = ?",
        interval_begin(request["start"], request["interval"]),
        interval_end(interval_begin(request.end, request["interval"]), request["interval"]),
        coin_dex(coin),
    )
    fills = [
        fill
        for batch in request.read_batches(rows)
        for text in store.row_texts("fill", [row for (row,) in batch])
        if (fill := read_record(Fill, text)).coin == coin
    ]
    fills.sort(key=lambda fill: (fill.time, fill.tx_index or 0))
    totals = TradeTotals(SECOND)
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
        book = msgspec.json.decode(text, type=L2Book)
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
    return encode(L2Book(coin=coin, time=request.now_ms, levels=[[], []]))


def group_levels(book: L2Book, digits: int | None, mantissa: int | None) -> L2Book:
    """Return a book with rounded prices; levels with the same price become one.

    Parameters
    ----------
    book : L2Book
        All levels, bids first, best price first.
    digits : int or None
        Significant digits of a price; None does not round.
    mantissa : int or None
        The last digit is a multiple of it; None means 1.

    Returns
    -------
    L2Book
        Bids are rounded down and asks up, so no price is better than a real one.

    Examples
    --------
    >>> best = BookLevel(px="99.96", sz="1.5", orders=1)
    >>> second = BookLevel(px="99.91", sz="2", orders=3)
    >>> book = group_levels(L2Book(coin="X", time=0, levels=[[best, second], []]), 3, None)
    >>> [(level.px, level.sz, level.orders) for level in book.levels[0]]
    [('99.9', '3.5', 4)]
    """
    if digits is None:
        return book
    roundings = (ROUND_FLOOR, ROUND_CEILING)
    levels = [
        _group_side(side, digits, mantissa or 1, rounding)
        for side, rounding in zip(book.levels, roundings, strict=True)
    ]
    return replace(book, levels=levels)


def _group_side(
    levels: list[BookLevel], digits: int, mantissa: int, rounding: str
) -> list[BookLevel]:
    sizes: dict[Decimal, Decimal] = {}
    orders: dict[Decimal, int] = {}
    for level in levels:
        price = Decimal(level.px)
        step = Decimal(mantissa).scaleb(price.adjusted() + 1 - digits)
        rounded = (price / step).to_integral_value(rounding=rounding) * step
        sizes[rounded] = sizes.get(rounded, Decimal(0)) + Decimal(level.sz)
        orders[rounded] = orders.get(rounded, 0) + level.orders
    return [
        BookLevel(px=format_decimal(price), sz=format_decimal(size), orders=orders[price])
        for price, size in sizes.items()
    ]


def exchange_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the present of the exchange; it never has a special status."""
    return b'{"time":%d,"specialStatuses":null}' % request.now_ms
