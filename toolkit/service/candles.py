"""Candles of any interval, put together from those of a minute."""

import datetime as dt
from collections import defaultdict
from typing import Final

import msgspec
import zstandard

from toolkit.contract.records import Candle
from toolkit.service.merging import plain
from toolkit.service.store import Store
from toolkit.service.tape import Minute, merge_minutes
from toolkit.times import DAY, HOUR, MINUTE

__all__ = ["candles"]

_LENGTHS: Final = {
    "1m": MINUTE,
    "3m": 3 * MINUTE,
    "5m": 5 * MINUTE,
    "15m": 15 * MINUTE,
    "30m": 30 * MINUTE,
    "1h": HOUR,
    "2h": 2 * HOUR,
    "4h": 4 * HOUR,
    "8h": 8 * HOUR,
    "12h": 12 * HOUR,
    "1d": DAY,
    "3d": 3 * DAY,
    "1w": 7 * DAY,
}
"""Intervals of one length; a month has none."""

_MONDAY: Final = 4 * DAY  # the first one after the epoch, which was a Thursday
_MOST: Final = 5_000


def candles(store: Store, coin: str, interval: str, start: int, end: int) -> list[Candle]:
    """Return the candles of a coin whose intervals meet a range of time, the latest 5,000.

    Parameters
    ----------
    store : Store
        Where the trades are.
    coin : str
        Its name in requests.
    interval : str
        One of `toolkit.contract.requests.INTERVALS`.
    start, end : int
        The range, in milliseconds, both ends included.
    """
    # ASSUMED: an interval without a trade has no candle, and a week begins on Monday.
    found: defaultdict[int, list[Minute]] = defaultdict(list)
    decode = msgspec.msgpack.Decoder(list[Minute]).decode
    decompress = zstandard.ZstdDecompressor().decompress
    for (data,) in store.rows("SELECT data FROM minutes WHERE coin = ? ORDER BY part", coin):
        for minute in decode(decompress(data)):
            found[_begin(minute.minute * MINUTE, interval)].append(minute)
    begins = [one for one in sorted(found) if one <= end and _end(one, interval) >= start]
    return [_candle(found[begin], coin, interval, begin) for begin in begins[-_MOST:]]


def _candle(minutes: list[Minute], coin: str, interval: str, begin: int) -> Candle:
    whole = merge_minutes(minutes)
    return Candle(
        start_time=begin,
        end_time=_end(begin, interval),
        coin=coin,
        interval=interval,
        open=whole.open,
        close=whole.close,
        high=whole.high,
        low=whole.low,
        volume=plain(whole.volume),
        trades=whole.trades,
    )


def _begin(time: int, interval: str) -> int:
    if (length := _LENGTHS.get(interval)) is not None:
        shift = _MONDAY if interval == "1w" else 0
        return (time - shift) // length * length + shift
    day = dt.datetime.fromtimestamp(time / 1000, dt.UTC)
    return _ms(day.replace(day=1, hour=0, minute=0, second=0, microsecond=0))


def _end(begin: int, interval: str) -> int:
    if (length := _LENGTHS.get(interval)) is not None:
        return begin + length - 1
    day = dt.datetime.fromtimestamp(begin / 1000, dt.UTC)
    return _ms((day + dt.timedelta(days=32)).replace(day=1)) - 1


def _ms(moment: dt.datetime) -> int:
    return int(moment.timestamp()) * 1000
