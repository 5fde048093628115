"""Times to fill: how long orders take until they are filled, or end otherwise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.errors import MissingDirections, warn_caller
from toolkit.installation import explain_missing
from toolkit.prepare.door import NO_TIME, Frame, Table
from toolkit.prepare.groups import group_columns, list_keys, number_groups, split_groups
from toolkit.prepare.orders import Events, read_events
from toolkit.prepare.prices import read_prices, span_ms
from toolkit.prepare.provenance import finish, state_provenance
from toolkit.prepare.trades import read_signs
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.twaps import SLICE_TYPE
from toolkit.statistics import Estimate, check_level, normal
from toolkit.times import SECOND, Time, to_ms

CAUSES = ("filled", "canceled", "rejected")
HORIZONS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
MARKET_TYPES = ("Market", "Vault Close", SLICE_TYPE, SPOT_DUST)
MARKET_TIFS = ("FrontendMarket", "Ioc", "LiquidationMarket")
_POINTS = 500
_TINY = 1e-12
_RESULT_NAMES = (
    "name", "estimate", "low", "high", "cause", "seconds", "probability", "code",
)  # fmt: skip
DISTANCE = "distance_bps"
_DECADES = 10.0 ** np.arange(-3, 13)
_MARKET = {"order_type": MARKET_TYPES, "tif": MARKET_TIFS}

Curve = tuple[Floats, Floats]
"""Ages in seconds, and the cumulative incidence, its low and its high: (3, causes, ages)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FillTimes(Estimate):
    """Probability that an order has been filled, or has ended otherwise, by an age.

    Attributes
    ----------
    params : DataFrame
        The groups, and in each group one row per cause and horizon:

        - ``size``: power of ten of the value of the orders, in USD. Only by size
        - ``name``: name of the figure
        - ``estimate``: share of the orders that have ended for the cause by the horizon
        - ``low``: lower end of the interval of the share
        - ``high``: upper end of the interval of the share

        The figures:

        - ``filled within N s``: share of the orders that are filled within N s
        - ``canceled within N s``: share of the orders that are canceled within N s
        - ``rejected within N s``: share of the orders that are rejected within N s
    curves : DataFrame
        The groups, and in each group at most 500 points for each cause:

        - ``size``: power of ten of the value of the orders, in USD. Only by size
        - ``cause``: filled, canceled or rejected
        - ``seconds``: time since the order was placed
        - ``probability``: share of the orders that have ended for the cause by the time
        - ``low``: lower end of the interval of the probability
        - ``high``: upper end of the interval of the probability
    ended : dict of str to int
        Cause -> number of orders that ended for it.
    open : int
        Number of orders that had not ended at their last event: censored.
    left_out : int
        Number of orders that were placed before the events begin, of which only the long-lived ones
        are visible.
    market : FillTimes or None
        The same for market orders, which are in no other figure here; None if there are none.
    triggers : FillTimes or None
        The same for trigger orders, which wait for a price before they rest or take; None if there
        are none.
    """

    curves: pd.DataFrame
    ended: dict[str, int]
    open: int
    left_out: int
    market: "FillTimes | None" = None
    triggers: "FillTimes | None" = None


class FillProbability(FillTimes):
    """Probability that a resting order has been filled by an age, by its distance from the mid.

    Attributes
    ----------
    params : DataFrame
        As of `FillTimes`, in each range of distances:

        - ``distance_bps``: lower end of the range of the distance from the mid, in basis points
        - ``name``: name of the figure
        - ``estimate``: share of the orders that have ended for the cause by the horizon
        - ``low``: lower end of the interval of the share
        - ``high``: upper end of the interval of the share

        The figures:

        - ``filled within N s``: share of the orders that are filled within N s
        - ``canceled within N s``: share of the orders that are canceled within N s
        - ``rejected within N s``: share of the orders that are rejected within N s
    curves : DataFrame
        As of `FillTimes`, in each range of distances:

        - ``distance_bps``: lower end of the range of the distance from the mid, in basis points
        - ``cause``: filled, canceled or rejected
        - ``seconds``: time since the order was placed
        - ``probability``: share of the orders that have ended for the cause by the time
        - ``low``: lower end of the interval of the probability
        - ``high``: upper end of the interval of the probability
    """


def time_to_fill(
    orders: Frame,
    *,
    since: Time | None = None,
    until: Time | None = None,
    horizons: Sequence[float] = HORIZONS,
    level: float = 0.95,
    by: str | Iterable[str] | None = None,
) -> FillTimes:
    """Estimate the time until orders are filled, cancelled or rejected, as competing risks.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``timestamp``, the time of placing. Repeated
        events count once. ``user``, ``order_type``, ``tif`` are used if they exist.
    since : time, optional
        Start of the window. Orders placed before it are left out: some of them ended before it, and
        the frame does not show these. By default the window of an account begins at its first
        event. If the frame has no event of the placing itself (such as ``open``), the window begins
        when the account's first order was placed.
    until : time, optional
        End of the window. An order that is still open then is censored. By default the time of the
        last event.
    horizons : sequence of float
        Ages in seconds for ``params``.
    level : float, default 0.95
        Level of the intervals.
    by : str or list of str, optional
        Groups: ``tif``, ``type`` (``order_type``), ``side``, ``size`` (the power of ten of
        ``limit_px * orig_sz`` in USD: 1000 means 1,000 to 10,000), ``dex``, ``hour``, ``day``,
        ``week`` of placing, or any other column.

    Returns
    -------
    FillTimes
        ``params`` has the columns of `by`, and a row for each cause and horizon, named like
        ``filled within 60 s``: the cumulative incidence. It is missing beyond the oldest age in the
        data, unless all orders have ended. ``n`` is the number of orders. Market orders
        (``order_type`` Market, Vault Close, Twap Slice, Spot Dust Conversion, or ``tif`` Ioc,
        FrontendMarket, LiquidationMarket) never rest: they are separate, in ``market``. Trigger
        orders (``is_trigger``) wait for a price first: they are in ``triggers``.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `level` is not between 0 and 1.

    Notes
    -----
    Estimator of Aalen and Johansen (1978), with ties; intervals on the scale of
    log(-log(1 - F)) (Kalbfleisch and Prentice, 2002). If the estimate is 0 or 1 that scale has no
    width; the interval is then that of Clopper and Pearson (1934) for as many orders as were
    observed for so long or ended before. One minus Kaplan and Meier's estimator would treat a
    cancelled order as one that may still be filled, and overestimate. Orders of one account are not
    independent: intervals are too narrow if few accounts place most orders.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 2, 3, 4], "status": ["filled", "canceled", "filled", "open"],
    ...     "timestamp": pd.to_datetime([0, 0, 0, 0], unit="ms", utc=True),
    ...     "status_timestamp": pd.to_datetime([1000, 2000, 3000, 0], unit="ms", utc=True)})
    >>> found = time_to_fill(orders, horizons=[0.5, 3])
    >>> found["filled within 3 s"]
    0.5
    >>> found.params.head(1).round(2)
                    name  estimate  low  high
    0  filled within 0.5 s       0.0  0.0   0.6
    """
    check_level(level)
    keys = list_keys(by, _RESULT_NAMES)
    events = read_events(orders)
    table = events.table
    table.require_some("timestamp", "says when each order was placed")
    markers = [name for name in ("order_type", "tif") if table.has(name)]
    if markers and all(table.is_blank(name) for name in markers):
        warn_caller(
            f"orders: {' and '.join(markers)} {'are' if len(markers) > 1 else 'is'} missing in "
            "every row, so market orders count as resting orders. Fetch the rows again",
            MissingDirections,
        )
    is_market = np.zeros(len(table), dtype=bool)
    for name in markers:
        is_market |= table.text(name).facts(_MARKET[name].__contains__)
    kind = np.where(table.flag("is_trigger")[0], 2, is_market.astype(np.int64))[events.rows]
    stop = int(events.ms.max(initial=NO_TIME)) if until is None else to_ms(until)
    begin = None if since is None else to_ms(since)
    ages, found = np.array(horizons, dtype=np.float64), dict[str, FillTimes]()
    for code, name in enumerate(("resting", "market", "triggers")):
        if name == "resting" or (kind == code).any():
            found[name] = _estimate(events.take(kind == code), keys, begin, stop, ages, level)
    results = [result for each in found.values() for result in (each.params, each.curves)]
    facts = {"helper": "orders.time_to_fill", "by": keys, "level": level}
    state_provenance(results, {"orders": table.frame}, **facts)
    return replace(found["resting"], market=found.get("market"), triggers=found.get("triggers"))


def fill_probability(
    orders: Frame,
    prices: Frame,
    edges: Sequence[float] = (0, 1, 2, 5, 10, 20, 50, 100),
    *,
    horizons: Sequence[float] = HORIZONS,
    price: str | None = None,
    max_age: str | float = "60s",
    since: Time | None = None,
    until: Time | None = None,
    level: float = 0.95,
    by: str | Iterable[str] | None = None,
) -> FillProbability:
    """Estimate how probable a fill of a resting order is, by its distance from the mid.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `time_to_fill`, with ``coin, side, limit_px``.
    prices : DataFrame
        Mids of the coins, as for `tk.execution.markout`.
    edges : list of float
        Lower ends of the ranges of distance, in basis points.
    price, max_age
        As for `tk.execution.fill_quality`: the last mid before the order was placed.
    horizons, since, until, level
        As for `time_to_fill`.
    by : str or list of str, optional
        Further groups, as for `time_to_fill`.

    Returns
    -------
    FillProbability
        As `time_to_fill` returns it, by ``distance_bps``: the lower end of the range of the
        distance from the mid, in basis points of the mid, positive if the order waits for a better
        price than the mid. It is -inf below the first of `edges`, and missing without a fresh mid.
        Market and trigger orders are apart.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `edges` do not rise, or a span of time or `level` is not valid.

    Examples
    --------
    Two buys at 99.9 and at 99 rest below a mid of 100; the first is filled after 2 seconds.

    >>> import pandas as pd
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> orders = pd.DataFrame({"oid": [1, 1, 2], "status": ["open", "filled", "open"],
    ...     "coin": "XYZ", "side": "B", "limit_px": [99.9, 99.9, 99.0], "timestamp": ms(9, 9, 9),
    ...     "status_timestamp": ms(9, 2_009, 9)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0], "time": ms(0)})
    >>> found = fill_probability(orders, mids, horizons=[2])
    >>> found.params.loc[found.params["name"] == "filled within 2 s",
    ...                  ["distance_bps", "estimate"]].values.tolist()
    [[10.0, 1.0], [100.0, 0.0]]
    """
    ends = np.array(edges, dtype=np.float64)
    if not len(ends) or (np.diff(ends) <= 0).any():
        raise ValueError(f"edges must rise, not {list(edges)}")
    table = Table(orders, "orders")
    table.require(("coin", "side", "limit_px", "timestamp"))
    age_ms = span_ms(max_age, "max_age")
    mid, _ = read_prices(prices, price).before(table.text("coin"), table.ms("timestamp"), age_ms)
    away = read_signs(table.text("side")) * (mid - table.number("limit_px")) / mid * 1e4
    # A limit price of some digits may lie a rounding error below an edge.
    place = np.searchsorted(ends, away + 1e-9, side="right")
    lower = np.where(np.isnan(away), np.nan, np.append(-np.inf, ends)[place])
    frame = table.frame.assign(distance_bps=lower)
    keys = [*list_keys(by, (*_RESULT_NAMES, DISTANCE)), DISTANCE]
    found = time_to_fill(frame, since=since, until=until, horizons=horizons, level=level, by=keys)
    inputs = {"orders": table.frame, "prices": prices}
    facts = finish(frame, inputs, helper="orders.fill_probability").attrs["toolkit"]
    for each in (found, found.market, found.triggers):
        for result in () if each is None else (each.params, each.curves):
            result.attrs["toolkit"] |= facts
    return FillProbability(**vars(found))


def _estimate(
    events: Events, keys: list[str], begin: int | None, stop: int, ages: Floats, level: float
) -> FillTimes:
    """Return the curves and figures of the orders behind the events."""
    table, events = events.table, events.take(events.ms <= stop)
    last, stated = events.take(events.is_last()), table.ms("timestamp")
    begins = np.full(len(last), begin)
    if begin is None:  # the events of each account begin with its first one
        account, times = table.text("user", blank=True).codes, stated[events.rows]
        times = events.ms if (events.ms == times).any() else times
        first = pd.Series(times).where(times != NO_TIME).groupby(account[events.rows]).min()
        begins = first.reindex(account[last.rows]).to_numpy()
    placed = stated[last.rows]
    is_seen = (placed >= begins) & (placed != NO_TIME)
    last, placed = last.take(is_seen), placed[is_seen]
    cause = last.groups().facts(lambda name: 1 + CAUSES.index(name) if name in CAUSES else 0)
    # An unknown status may be an end. It is only known that the order existed until then.
    is_over = (cause > 0) | last.groups().facts("unknown".__eq__)
    seconds = np.maximum(np.where(is_over, last.ms, stop) - placed, 0) / SECOND
    # Times of groups are those of placing.
    names = {key: "order_type" if key == "type" else key for key in keys}
    plain = [name for name in names.values() if name != "size"]
    columns = group_columns(table, plain, "timestamp", last.rows)
    if "size" in keys:
        table.require(("limit_px", "orig_sz"))
        usd = (table.number("limit_px") * table.number("orig_sz"))[last.rows]
        place = np.maximum(np.searchsorted(_DECADES, usd, "right") - 1, 0)
        columns["size"] = np.where(usd > 0, _DECADES[place], np.nan)
    columns = pd.DataFrame({key: columns[name] for key, name in names.items()}, columns.index)
    group, groups = number_groups(columns, missing_last=True)
    # Without keys there is one group, which may be empty.
    found = [
        _incidence_curves(seconds[own], cause[own], ages, level)
        for own in split_groups(group, len(groups) if keys else 1)
    ]
    params, curves = (_stack_curves([each[place] for each in found], groups) for place in (0, 1))
    within = params.pop("seconds").map("{:g}".format).astype("str")
    params["cause"] += " within " + within + " s"
    return FillTimes(
        params=params.rename(columns={"cause": "name", "probability": "estimate"}),
        n=len(last),
        level=level,
        method="cumulative incidence (Aalen and Johansen), log-log intervals, exact at 0 and 1",
        curves=curves,
        ended={name: int((cause == k + 1).sum()) for k, name in enumerate(CAUSES)},
        open=int((cause == 0).sum()),
        left_out=int((~is_seen).sum()),
    )


def _incidence_curves(
    seconds: Floats, cause: Ints, ages: Floats, level: float
) -> tuple[Curve, Curve]:
    """Return the cumulative incidence of each cause at the ages, and at ages with an event."""
    lost = np.sort(seconds[cause == 0])
    times, share, error = np.zeros(0), *np.zeros((2, len(CAUSES), 0))
    if cause.any():
        with explain_missing("analysis"):
            from statsmodels.duration.survfunc import CumIncidenceRight
        # If all remaining orders end at once, the variance divides by zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = CumIncidenceRight(seconds, cause)
        times = fitted.times
        share, error = np.zeros((2, len(CAUSES), len(times)))
        share[: len(fitted.cinc)], error[: len(fitted.cinc)] = fitted.cinc, fitted.cinc_se
    # The number of orders whose state at each age is known.
    watched = len(seconds) - np.searchsorted(lost, times, "left")
    plain = np.sqrt(share * np.maximum(1 - share, 0.0) / watched)
    error = np.where(np.isfinite(error) & (error > 0), error, plain)
    parts = _add_intervals(share, error, watched, level)
    place = np.searchsorted(times, ages, "right")  # 0: before the first event
    at = np.pad(parts, ((0, 0), (0, 0), (1, 0)))[..., place]
    # At 0 and 1 the interval is exact. After the last event more orders may be censored.
    watched = np.maximum(len(seconds) - np.searchsorted(lost, ages, "left"), 1)
    exact = _add_intervals(at[0], np.zeros_like(at[0]), watched, level)
    at = np.where((at[0] > _TINY) & (at[0] < 1 - _TINY), at, exact)
    # The probability is missing beyond the oldest age.
    all_ended = share[:, -1:].sum() > 1 - 1e-9
    at = np.where((ages <= seconds.max(initial=-np.inf)) | all_ended, at, np.nan)
    # At most 500 points of each curve, evenly spaced, with the last one.
    points = np.linspace(0, len(times) - 1, _POINTS if len(times) else 0)
    places = np.unique(points.round().astype(int))
    return (ages, at), (times[places], parts[..., places])


def _add_intervals(chance: Floats, error: Floats, watched: Ints, level: float) -> Floats:
    """Return probabilities with low and high: log-log intervals; at 0 and 1 Clopper and Pearson."""
    never, always = chance <= _TINY, chance >= 1 - _TINY
    inside = np.where(never | always, 0.5, chance)
    rest = np.log1p(-inside)  # log(-log(1 - F)) has the derivative -1 / ((1 - F) log(1 - F))
    wide = normal(level) * np.where(never | always, 0.0, error) / ((1 - inside) * -rest)
    low, high = (-np.expm1(rest * np.exp(sign * wide)) for sign in (-1, 1))
    tail = ((1 - level) / 2) ** (1 / watched)
    low = np.where(never, 0.0, np.where(always, tail, low))
    return np.stack([chance, low, np.where(never, 1 - tail, np.where(always, 1.0, high))])


def _stack_curves(curves: list[Curve], groups: pd.DataFrame) -> pd.DataFrame:
    """Return the curves of the groups below each other, with the columns of the groups in front."""
    counts = [len(CAUSES) * len(ages) for ages, _ in curves]
    rows = [np.vstack([np.tile(ages, len(CAUSES)), parts.reshape(3, -1)]) for ages, parts in curves]
    names = ["seconds", "probability", "low", "high"]
    made = pd.DataFrame(np.hstack([np.zeros((4, 0)), *rows]).T, columns=names)
    causes = [np.repeat(CAUSES, len(ages)) for ages, _ in curves]
    made.insert(0, "cause", pd.Series(np.concatenate([[], *causes]), dtype="str"))
    front = groups.loc[groups.index.repeat(counts)] if len(groups.columns) else groups.iloc[:0]
    return pd.concat([front.reset_index(drop=True), made], axis=1)
