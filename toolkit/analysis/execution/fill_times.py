"""Times to fill: how long orders take until they are filled, or end otherwise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, grouping, markets, timestamps
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution.orders import sort_events
from toolkit.arrays import Floats
from toolkit.errors import MissingDirections, warn_caller
from toolkit.installation import explain_missing
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.twaps import SLICE_TYPE
from toolkit.times import SECOND, Time, to_ms

CAUSES: Final = ("filled", "canceled", "rejected")
HORIZONS: Final = (1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
MARKET_TYPES: Final = ("Market", "Vault Close", SLICE_TYPE, SPOT_DUST)
MARKET_TIFS: Final = ("FrontendMarket", "LiquidationMarket")
_POINTS = 500
_TINY: Final = 1e-12
_RESULT_NAMES: Final = (
    "name",
    "estimate",
    "low",
    "high",
    "cause",
    "seconds",
    "probability",
    "code",
)
_COLUMNS: Final = {"type": "order_type"}


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
    """

    curves: pd.DataFrame
    ended: dict[str, int]
    open: int
    left_out: int
    market: "FillTimes | None" = None

    picture: ClassVar[str] = "fill_times"


def time_to_fill(
    orders: IntoFrame,
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
        Status events as for `transitions`, with ``timestamp``, the time of placing (any engine).
        Repeated events count once. ``user``, ``order_type``, ``tif`` are used if they exist.
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
        (``order_type`` Market, Vault Close, Twap Slice, Spot Dust Conversion, or ``tif``
        FrontendMarket, LiquidationMarket; no trigger orders) never rest: they are separate, in
        ``market``.

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
    keys = grouping.list_keys(by, _RESULT_NAMES)
    rows = _read_orders(orders, keys)
    is_market = _is_market(rows)
    stop = to_ms(until) if until is not None else rows["ms"].max()
    facts = {
        **result_provenance({"orders": orders}),
        "helper": "orders.time_to_fill",
        "by": keys,
        "level": level,
    }
    make = partial(_estimate, keys=keys, since=since, stop=stop, horizons=horizons, level=level)
    market = make(rows[is_market], facts) if is_market.any() else None
    return make(rows[~is_market], facts, market=market)


def _read_orders(orders: IntoFrame, keys: list[str]) -> pd.DataFrame:
    """Return the events in order, with the columns to group by."""
    own = [_COLUMNS.get(key, key) for key in keys if key not in ("size", *grouping.DERIVED_GROUPS)]
    own += ["coin"] if "dex" in keys else []
    amounts = ("limit_px", "orig_sz") if "size" in keys else ()
    optional = ("user", "order_type", "tif", "is_trigger")
    rows = sort_events(orders, ("timestamp", *own), optional, amounts)
    frame = nw.from_native(rows, eager_only=True)
    frame_access.require_some_values(
        frame, "timestamp", "orders", "says when each order was placed"
    )
    markers = [name for name in ("order_type", "tif") if name in rows]
    if markers and all(frame_access.is_empty_column(frame, name) for name in markers):
        warn_caller(
            f"orders: {' and '.join(markers)} {'are' if len(markers) > 1 else 'is'} missing in "
            "every row, so market orders count as resting orders. Fetch the rows again",
            MissingDirections,
        )
    for key in keys:
        if key in _COLUMNS:
            rows[key] = rows[_COLUMNS[key]]
        elif key == "size":
            usd = rows["limit_px"] * rows["orig_sz"]
            decades = 10.0 ** np.arange(-3, 13)
            place = np.searchsorted(decades, usd.to_numpy(), "right") - 1
            rows[key] = np.where(usd > 0, decades[np.maximum(place, 0)], np.nan)
        elif key == "dex":
            frame = nw.from_native(rows, eager_only=True)
            rows[key] = frame.select(dex=markets.dex_of(nw.col("coin"))).to_native()["dex"]
        elif key in grouping.CALENDAR:
            length, into = grouping.CALENDAR[key]
            rows[key] = timestamps.timestamps_from_ms(
                rows["placed"] - (rows["placed"] + into) % length
            )
    return rows


def _is_market(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether events are those of market orders, which never rest."""
    found = pd.Series(data=False, index=rows.index)
    for name, words in (("order_type", MARKET_TYPES), ("tif", MARKET_TIFS)):
        if name in rows:
            found = found | rows[name].isin(words)
    if "is_trigger" in rows:
        found = found & ~rows["is_trigger"].astype("boolean").fillna(value=False).astype(bool)
    return found


def _estimate(
    rows: pd.DataFrame,
    facts: dict[str, Any],
    *,
    keys: list[str],
    since: Time | None,
    stop: float,
    horizons: Sequence[float],
    level: float,
    market: FillTimes | None = None,
) -> FillTimes:
    """Return the curves and figures of the orders behind the events."""
    ends, left_out = _order_ends(rows, keys, since, stop)
    all_params, all_curves = [], []
    for key, group in _group_orders(ends, keys):
        seconds = group["seconds"].to_numpy(dtype="float64")
        status = group["code"].to_numpy(dtype="int64")
        curves = _incidence_curves(seconds, status, level)
        oldest = _known_until(curves, seconds)
        all_params.append(
            (key, _params_at_horizons(curves, horizons, oldest, (seconds, status), level))
        )
        all_curves.append((key, _thin_curves(curves)))
    params = _stack_groups(all_params, keys, ends)
    thin = _stack_groups(all_curves, keys, ends)
    for frame in (params, thin):
        frame.attrs["toolkit"] = facts
    codes = ends["code"]
    return FillTimes(
        params=params,
        n=len(ends),
        level=level,
        method="cumulative incidence (Aalen and Johansen), log-log intervals, exact at 0 and 1",
        curves=thin,
        ended={cause: int((codes == k + 1).sum()) for k, cause in enumerate(CAUSES)},
        open=int((codes == 0).sum()),
        left_out=left_out,
        market=market,
    )


def _group_orders(
    ends: pd.DataFrame, keys: list[str]
) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return the groups in order; without keys there is one group, which may be empty."""
    if not keys:
        return [((), ends)]
    split = ends.groupby(keys, sort=True, dropna=False)
    # A frame without rows still has the columns of its figures.
    return [(key, group) for key, group in split] or [((None,) * len(keys), ends)]


def _stack_groups(
    parts: list[tuple[tuple[Any, ...], pd.DataFrame]], keys: list[str], ends: pd.DataFrame
) -> pd.DataFrame:
    """Return the groups' frames below each other, with the columns to group by in front."""
    framed = []
    for values, part in parts:
        part = part if len(ends) or not keys else part.iloc[:0]
        front = {
            key: pd.Series([value] * len(part), dtype=_key_dtype(ends[key]), index=part.index)
            for key, value in zip(keys, values, strict=True)
        }
        framed.append(pd.concat([pd.DataFrame(front, index=part.index), part], axis=1))
    return pd.concat(framed, ignore_index=True)


def _key_dtype(column: pd.Series) -> Any:
    return "str" if pd.api.types.is_string_dtype(column.dtype) else column.dtype


def _order_ends(
    rows: pd.DataFrame, keys: list[str], since: Time | None, end: float
) -> tuple[pd.DataFrame, int]:
    """Return two values: a table of orders, and the number of orders that are not in it.

    The table has each order's age at its end or last event, and the cause of its end. It does not
    have the orders that were placed before the events begin.
    """
    rows = rows[rows["ms"] <= end] if len(rows) else rows
    last = rows.drop_duplicates("oid", keep="last")
    begin = _window_begins(rows, last) if since is None else float(to_ms(since))
    seen = last["placed"] >= begin
    cause = last["_group"]
    ended = cause.isin(CAUSES)
    # An unknown status may be an end. It is only known that the order existed until then.
    stop = last["ms"].where(ended | (cause == "unknown"), end)
    codes = cause.map({name: k + 1 for k, name in enumerate(CAUSES)})
    ends = last[keys].assign(
        seconds=((stop - last["placed"]) / SECOND).clip(lower=0.0).astype("float64"),
        code=codes.astype("float64").fillna(0).astype("int64"),
    )
    return ends[seen], int((~seen).sum())


def _window_begins(rows: pd.DataFrame, last: pd.DataFrame) -> "pd.Series[float]":
    """Return for each order when the events of its account begin."""
    account = rows["user"] if "user" in rows else pd.Series(0, index=rows.index)
    shows_placings = (rows["ms"] == rows["placed"]).any()
    times = rows["ms"] if shows_placings else rows["placed"]
    return times.groupby(account, dropna=False).transform("min").reindex(last.index)


def _incidence_curves(seconds: Floats, status: npt.NDArray[Any], level: float) -> pd.DataFrame:
    """Return the cumulative incidence of each cause at each age with an event."""
    with explain_missing("analysis"):
        from scipy import stats

    names = ["cause", "seconds", "probability", "low", "high"]
    types: dict[str, Any] = {"cause": "str"} | dict.fromkeys(names[1:], "float64")
    if not status.any():
        return pd.DataFrame({name: pd.Series(dtype=types[name]) for name in names})
    with explain_missing("analysis"):
        from statsmodels.duration.survfunc import CumIncidenceRight

    # If all remaining orders end at once, the variance divides by zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        fitted = CumIncidenceRight(seconds, status)
    z = float(stats.norm.ppf((1 + level) / 2))
    watched = _orders_at_risk(seconds, status, fitted.times)
    parts = []
    for k, cause in enumerate(CAUSES):
        there = k < len(fitted.cinc)
        flat = np.zeros(len(fitted.times))
        chance = fitted.cinc[k] if there else flat
        error = np.asarray(fitted.cinc_se[k] if there else flat)
        plain = np.sqrt(chance * np.maximum(1 - chance, 0.0) / watched)
        error = np.where(np.isfinite(error) & (error > 0), error, plain)
        low, high = _intervals(chance, error, z, watched, level)
        cells = (np.full(len(chance), cause), fitted.times, chance, low, high)
        parts.append(pd.DataFrame(dict(zip(names, cells, strict=True))))
    return pd.concat(parts, ignore_index=True).astype(types)


def _orders_at_risk(seconds: Floats, status: npt.NDArray[Any], ages: Floats) -> Floats:
    """Return the number of orders whose state at each age is known."""
    lost = np.sort(seconds[status == 0])
    return np.asarray(len(seconds) - np.searchsorted(lost, ages, "left"), dtype=np.float64)


def _intervals(
    chance: Floats, error: Floats, z: float, watched: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return log-log intervals, and those of Clopper and Pearson if the probability is 0 or 1."""
    never, always = chance <= _TINY, chance >= 1 - _TINY
    inside = np.where(never | always, 0.5, chance)
    rest = np.log1p(-inside)  # log(-log(1 - F)) has the derivative -1 / ((1 - F) log(1 - F))
    wide = z * np.where(never | always, 0.0, error) / ((1 - inside) * -rest)
    low, high = (-np.expm1(rest * np.exp(sign * wide)) for sign in (-1, 1))
    tail = ((1 - level) / 2) ** (1 / watched)
    low = np.where(never, 0.0, np.where(always, tail, low))
    return low, np.where(never, 1 - tail, np.where(always, 1.0, high))


def _known_until(curves: pd.DataFrame, seconds: Floats) -> float:
    """Return the age until which the curves are known; infinity if every order has ended."""
    ended = curves.groupby("cause")["probability"].last().sum()
    if ended > 1 - 1e-9:
        return float("inf")
    return float(seconds.max()) if len(seconds) else float("nan")


def _params_at_horizons(
    curves: pd.DataFrame,
    horizons: Sequence[float],
    oldest: float,
    ends: tuple[Floats, npt.NDArray[Any]],
    level: float,
) -> pd.DataFrame:
    """Return the probability of each cause at each horizon, with its interval."""
    rows: list[tuple[Any, ...]] = []
    for cause in CAUSES:
        own = curves[curves["cause"] == cause]
        for horizon in horizons:
            name = f"{cause} within {horizon:g} s"
            if not horizon <= oldest:
                rows.append((name, *[float("nan")] * 3))
                continue
            place = int(np.searchsorted(own["seconds"].to_numpy(), horizon, "right")) - 1
            found: Any = own.iloc[place] if place >= 0 else {"probability": 0.0}
            chance = np.array([found["probability"]])
            if _TINY < chance[0] < 1 - _TINY:
                rows.append((name, chance[0], found["low"], found["high"]))
                continue
            # After the last event more orders may be censored.
            watched = _orders_at_risk(*ends, np.array([horizon]))
            low, high = _intervals(chance, np.zeros(1), 0.0, np.maximum(watched, 1.0), level)
            rows.append((name, chance[0], low[0], high[0]))
    types = {"name": "str", "estimate": "float64", "low": "float64", "high": "float64"}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _thin_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return at most 500 points of each curve, evenly spaced; the last point is always kept."""
    parts = []
    for _, own in curves.groupby("cause", sort=False):
        places = np.unique(np.linspace(0, len(own) - 1, _POINTS).round().astype(int))
        parts.append(own.iloc[places])
    return pd.concat(parts, ignore_index=True) if parts else curves
