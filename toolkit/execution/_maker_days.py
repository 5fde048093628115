"""A maker's days: what spreads earned, what prices took back, and what the inventory made."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Names, utc_times
from toolkit.prepare.fills import Fills, check_chains
from toolkit.prepare.fills import fills as prepare_fills
from toolkit.prepare.funding import covered_period, read_payments
from toolkit.prepare.groups import list_keys, number_groups, sum_groups
from toolkit.prepare.money import dex_of
from toolkit.prepare.prices import PriceHistory, list_spans, span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.roles import is_off_book
from toolkit.times import DAY, SECOND

_NEEDED: Final = ("coin", "px", "sz", "side", "time", "start_position", "crossed", "fee")
_GROUPS: Final = ("user", "coin", "dex", "day")
_ADVERSE: Final = "adverse_{:g}s"


def maker_days(
    fills: Frame | Fills,
    prices: Frame,
    funding: Frame | None = None,
    horizons: Sequence[str | float] = ("1s", "10s", "1m", "5m"),
    *,
    by: str | Iterable[str] | None = ("day",),
    account: str | None = None,
    price: str | None = None,
    max_age: str | float = "60s",
) -> pd.DataFrame:
    """Split the net PnL of each day into spread, adverse selection, inventory, fees and funding.

    Parameters
    ----------
    fills : DataFrame
        All fills of one account, or of several with ``user``: ``coin, px, sz, side, time,
        start_position, crossed, fee``. Repeated rows count once.
    prices : DataFrame
        Mids of the coins, as for `markout`, from before the first fill to the end of the last day.
    funding : DataFrame, optional
        Funding rows of the same accounts and time, as for `tk.pnl.attribution`.
    horizons : list of str or float
        Times after a fill at which adverse selection is stated. The longest is part of ``net``.
    by : str, list of str or None, default ("day",)
        Groups: ``day`` (UTC), ``user``, ``coin``, ``dex``.
    account, price, max_age
        As for `tk.pnl.attribution` and `markout`.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then amounts in USD, positive if good for the account:

        - ``fills``: number of fills.
        - ``volume``: sum of px * sz, in USD.
        - ``spread``: gain of the maker's fills against the mid before them, in USD.
        - ``taking``: gain of the taker's fills against the mid before them, in USD.
        - ``adverse_Ns``: gain of the maker's fills from the mid before them to N seconds later, in
          USD; a loss if prices follow the other side. One column for each of `horizons`.
        - ``inventory``: other gain of the positions, in USD: from the longest horizon on, of those
          from the day before, and of ``unpriced`` fills.
        - ``rebates``: rebates, in USD.
        - ``fees``: fees, in USD, also those in the base token of spot buys.
        - ``funding``: funding, in USD; missing if it is not passed, and then not in ``net``.
        - ``net``: spread, taking, adverse selection at the longest horizon, inventory, rebates,
          fees and funding, in USD: the change of cash and positions at mids.
        - ``unpriced``: number of fills off the book, without ``crossed``, or without a fresh mid
          before them or at the longest horizon.
        - ``gaps``: number of fills before which the position changed without a fill.
        - ``mark_age_seconds``: largest age of the mids of open positions at the ends of days.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time is not valid, the prices are those of trades, or fills without a column
        ``user`` are of several accounts.

    Notes
    -----
    A coin's first day begins with its first fill, its last day ends at midnight. With position q,
    size c (negative for sells), mid m before a fill and its price p: ``net`` before fees and
    funding is ``q m`` at the end less ``q m`` at the start less ``sum(c p)``, ``spread`` is
    ``sum(c (m - p))``. A day whose open position has no mid has no ``inventory`` and no ``net``.

    Examples
    --------
    The maker buys 2 at 99 with the mid at 100, which falls to 98.5, and sells them at 99.5. The
    mid is 99 then, and 99 after it.

    >>> import pandas as pd
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [99.0, 99.5], "sz": 2.0, "side": ["B", "A"],
    ...     "crossed": False, "fee": -0.1, "start_position": [0.0, 2.0], "closed_pnl": [0.0, 1.0],
    ...     "time": ms(1_000, 60_000)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 98.5, 99.0, 99.0],
    ...     "time": ms(900, 10_000, 59_000, 70_000)})
    >>> maker_days(fills, mids, horizons=["10s"])[
    ...     ["spread", "adverse_10s", "inventory", "rebates", "net"]]
       spread  adverse_10s  inventory  rebates  net
    0     3.0         -3.0        1.0      0.2  1.2
    """
    spans = list_spans(horizons, "horizons")
    keys = list_keys(by)
    if wrong := [key for key in keys if key not in _GROUPS]:
        raise ValueError(f"cannot group by {wrong[0]!r}: choose among {', '.join(_GROUPS)}")
    prepared = prepare_fills(fills, account)
    table = prepared.table
    check_chains(prepared, _NEEDED, warns=False)
    marks = reference_prices(table, prices, price, max_age)
    cells = _day_cells(prepared, marks, spans, span_ms(max_age, "max_age"))
    parts = [*cells.columns[3:-1]]
    if funding is not None:
        paid = read_payments(prepared, funding, covered_period(table))
        rows, kept = paid.table, np.flatnonzero(paid.mine & paid.inside)
        only = Names(np.zeros(len(rows), dtype=np.int64), [*(prepared.owners.users or [""])])
        names = rows.text("user") if rows.has("user") and table.has("user") else only
        own = {
            **dict.fromkeys(parts, 0.0),
            "user": names.texts(kept),
            "coin": rows.text("coin").texts(kept),
            "day": rows.ms()[kept] // DAY * DAY,
            "funding": np.nan_to_num(paid.usd[kept]),
        }
        cells = pd.concat([cells, pd.DataFrame(own)], ignore_index=True)
    columns = cells[["user", "coin"]].assign(dex=cells["coin"].map(dex_of).astype("str"))
    codes, groups = number_groups(columns.assign(day=utc_times(cells["day"]))[keys])
    number = len(groups) if keys else 1
    sums = {name: sum_groups(codes, cells[name].to_numpy(np.float64), number) for name in parts}
    if funding is None:
        sums["funding"] = np.full(number, np.nan)
    later = parts[parts.index(_ADVERSE.format(spans[-1] / SECOND)) : parts.index("funding")]
    net = np.sum([sums[name] for name in ("spread", "taking", *later)], axis=0)
    age = np.full(number, np.nan)
    np.fmax.at(age, codes, cells["mark_age_seconds"].to_numpy(np.float64))
    result = pd.DataFrame({**groups, **sums}, index=range(number))
    result = result.astype(dict.fromkeys(("fills", "unpriced", "gaps"), "int64"))
    result.insert(len(result.columns) - 2, "net", net + np.nan_to_num(sums["funding"]))
    result["mark_age_seconds"] = age
    inputs = {"fills": table.frame, "prices": prices, "funding": funding}
    return finish(result, inputs, helper="execution.maker_days", by=keys)


def _day_cells(fills: Fills, marks: PriceHistory, spans: list[int], age_ms: int) -> pd.DataFrame:
    """Return the parts of the PnL of each coin and day."""
    table, steps, money = fills.table, fills.steps, fills.money
    rows, heads = steps.rows, np.flatnonzero(steps.first)
    # Days of each coin, from its first fill to the day of its last one.
    day = steps.ms // DAY
    lengths = day[np.flatnonzero(steps.last)] - day[heads] + 1
    begins = np.append(0, np.cumsum(lengths))
    first, count = begins[:-1], int(begins[-1])
    of_fill = begins[steps.chain] + day - day[heads][steps.chain]
    days = np.arange(count) - np.repeat(first - day[heads], lengths)
    step = np.zeros(count, dtype=np.int64)
    step[of_fill] = np.arange(len(day))
    step = np.maximum.accumulate(step)  # the last fill until the end of the day
    coin, px, usd = table.text("coin").take(rows), table.number("px")[rows], money.price[rows]
    size = steps.change / steps.scale
    mid, _ = marks.before(coin, steps.ms, age_ms)
    gains = [size * (marks.after(coin, steps.ms, span, age_ms)[0] - mid) * usd for span in spans]
    crossed, is_known = (flags[rows] for flags in table.flag("crossed"))
    priced = is_known & ~is_off_book(table)[rows] & ~np.isnan(mid)
    maker = priced & ~crossed
    edge = np.where(priced, size * (mid - px) * usd, 0.0)

    def total(values: Any) -> Floats:
        return sum_groups(of_fill, values, count)

    parts = {
        "spread": total(np.where(maker, edge, 0.0)),
        "taking": total(np.where(maker, 0.0, edge)),
    }
    for span, gain in zip(spans, gains, strict=True):
        parts[_ADVERSE.format(span / SECOND)] = total(np.where(maker, np.nan_to_num(gain), 0.0))
    # The change of the positions at mids, less what was paid for them.
    held, start = (steps.end / steps.scale)[step], np.zeros(count)
    start[1:] = held[:-1]
    start[first] = (steps.start / steps.scale)[steps.first]
    end_px, end_age = marks.last_at(coin.take(step), (days + 1) * DAY - 1)
    start_px = np.append(np.nan, end_px)[:count]
    start_px[first] = mid[steps.first]
    worth = np.where(held == 0, 0.0, held * end_px) - np.where(start == 0, 0.0, start * start_px)
    change = worth * usd[step] - total((size + steps.gap / steps.scale) * px * usd)
    fee, in_cost = money.fee[rows], money.fee_in_cost[rows]
    owned = money.builder_fee[rows] + money.deployer_fee[rows]
    rebate = np.maximum(owned - fee - in_cost, 0.0)
    shown = parts["spread"] + parts["taking"] + parts[_ADVERSE.format(spans[-1] / SECOND)]
    return pd.DataFrame(
        {
            "user": Names(steps.user[step], steps.users).texts(),
            "coin": coin.texts(step),
            "day": days * DAY,
            "fills": total(np.ones(len(rows))),
            "volume": total(money.volume[rows]),
            **parts,
            "inventory": change + total(in_cost) - shown,
            "rebates": total(rebate),
            "fees": -total(fee + in_cost + rebate),
            "funding": 0.0,
            "unpriced": total(~priced | (maker & np.isnan(gains[-1]))),
            "gaps": total(steps.is_gap & ~steps.same_start),
            "mark_age_seconds": np.where(held == 0, np.nan, end_age),
        }
    )
