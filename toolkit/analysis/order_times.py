"""How long orders take until they are filled, or end otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis import order_events
from toolkit.analysis.origin import joint
from toolkit.analysis.result import Estimate, checked
from toolkit.times import SECOND, Time, to_ms

__all__ = ["FillTimes", "time_to_fill"]

CAUSES: Final = ("filled", "canceled", "rejected")
HORIZONS: Final = (1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
_POINTS = 500
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FillTimes(Estimate):
    """How probable it is that an order has been filled, or has ended otherwise, by an age.

    Attributes
    ----------
    curves : DataFrame
        ``cause`` (filled, canceled, rejected), ``seconds`` since it was placed, ``probability``
        of having ended so by then, ``low``, ``high``; at most 500 points a cause.
    ended : dict of str to int
        Cause -> orders that ended so.
    open : int
        Orders that had not ended when last seen: censored.
    left_out : int
        Orders placed before the events begin, of which only those that lasted are seen.
    """

    curves: pd.DataFrame
    ended: dict[str, int]
    open: int
    left_out: int

    picture: ClassVar[str] = "fill_times"


def time_to_fill(
    orders: Any,
    *,
    since: Time | None = None,
    until: Time | None = None,
    horizons: Sequence[float] = HORIZONS,
    level: float = 0.95,
) -> FillTimes:
    """Estimate how long orders take to be filled, where cancelling and rejecting compete.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``timestamp``, the time of placing (any
        engine). An event given twice is one event.
    since : time, optional
        When the events begin; orders placed before are left out, since those of them that
        ended before are not seen. Without it, the first event.
    until : time, optional
        When they end: an order still open then is censored. Without it, the last event.
    horizons : sequence of float
        Ages in seconds for ``params``.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    FillTimes
        ``params`` has a row for each cause and horizon, named like ``filled within 60 s``:
        the cumulative incidence; missing beyond the oldest age seen, unless all have ended.
        ``n`` counts orders.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `level` is not between 0 and 1.

    Notes
    -----
    Estimator of Aalen and Johansen (1978), with ties; intervals on the scale of
    log(-log(1 - F)) (Kalbfleisch and Prentice, 2002). One minus Kaplan and Meier's estimator
    would take a cancelled order for one that may yet be filled, and overstate. Orders of one
    account are not independent: intervals are too narrow where few accounts place most orders.

    Examples
    --------
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 2, 3, 4], "status": ["filled", "canceled", "filled", "open"],
    ...     "timestamp": pd.to_datetime([0, 0, 0, 0], unit="ms", utc=True),
    ...     "status_timestamp": pd.to_datetime([1000, 2000, 3000, 0], unit="ms", utc=True)})
    >>> time_to_fill(orders, horizons=[1, 3])["filled within 3 s"]
    0.5
    """
    checked(level)
    ends = _ends(orders, since, until)
    seconds = ends["seconds"].to_numpy(dtype="float64")
    codes = ends["cause"].map({cause: k + 1 for k, cause in enumerate(CAUSES)}).fillna(0)
    status = codes.to_numpy(dtype="int64")
    curves = _curves(seconds, status, level)
    oldest = _known_until(curves, seconds)
    params = _at_horizons(curves, horizons, oldest)
    facts = {**joint({"orders": orders}), "helper": "orders.time_to_fill", "level": level}
    thin = _thinned(curves)
    for made in (params, thin):
        made.attrs["toolkit"] = facts
    return FillTimes(
        params=params,
        n=len(ends),
        level=level,
        method="cumulative incidence (Aalen and Johansen), log-log intervals",
        curves=thin,
        ended={cause: int((status == k + 1).sum()) for k, cause in enumerate(CAUSES)},
        open=int((status == 0).sum()),
        left_out=int(ends.attrs["left_out"]),
    )


def _ends(orders: Any, since: Time | None, until: Time | None) -> pd.DataFrame:
    """Give each order's age at its end, or when it was last seen, and why it ended."""
    rows = order_events.in_order(orders, ("timestamp",))
    begin = to_ms(since) if since is not None else rows["ms"].min()
    end = to_ms(until) if until is not None else rows["ms"].max()
    rows = rows[rows["ms"] <= end] if len(rows) else rows
    last = rows.drop_duplicates("oid", keep="last")
    seen = last["placed"] >= begin
    cause = last["_group"]
    ended = cause.isin(CAUSES)
    # A status that is not known may be an end: what is sure is that it was there until then.
    stop = last["ms"].where(ended | (cause == "unknown"), end)
    made = pd.DataFrame(
        {
            "seconds": ((stop - last["placed"]) / SECOND).clip(lower=0.0).astype("float64"),
            "cause": cause.where(ended).astype("str"),
        }
    )[seen]
    made.attrs["left_out"] = int((~seen).sum())
    return made


def _curves(seconds: Array, status: npt.NDArray[Any], level: float) -> pd.DataFrame:
    """Give the cumulative incidence of each cause at each age where something happened."""
    from scipy import stats

    names = ["cause", "seconds", "probability", "low", "high"]
    types: dict[str, Any] = {"cause": "str"} | dict.fromkeys(names[1:], "float64")
    if not status.any():
        return pd.DataFrame({name: pd.Series(dtype=types[name]) for name in names})
    from statsmodels.duration.survfunc import CumIncidenceRight

    # Where all that is left ends at once, the variance divides by nothing: the last one stands.
    with np.errstate(divide="ignore", invalid="ignore"):
        fitted = CumIncidenceRight(seconds, status)
    z = float(stats.norm.ppf((1 + level) / 2))
    parts = []
    for k, cause in enumerate(CAUSES):
        there = k < len(fitted.cinc)
        flat = np.zeros(len(fitted.times))
        chance = fitted.cinc[k] if there else flat
        error = pd.Series(fitted.cinc_se[k] if there else flat).ffill().to_numpy()
        low, high = _log_log(chance, error, z)
        cells = (np.full(len(chance), cause), fitted.times, chance, low, high)
        parts.append(pd.DataFrame(dict(zip(names, cells, strict=True))))
    return pd.concat(parts, ignore_index=True).astype(types)


def _log_log(chance: Array, error: Array, z: float) -> tuple[Array, Array]:
    sure = (chance <= 0) | (chance >= 1)
    inside = np.where(sure, 0.5, chance)
    rest = np.log1p(-inside)  # of F: log(-log(1 - F)) has the derivative -1 / ((1 - F) log(1 - F))
    wide = z * np.where(sure, 0.0, error) / ((1 - inside) * -rest)
    low, high = (-np.expm1(rest * np.exp(sign * wide)) for sign in (-1, 1))
    return np.where(sure, chance, low), np.where(sure, chance, high)


def _known_until(curves: pd.DataFrame, seconds: Array) -> float:
    """Give the age until which the curves are known: for ever where every order has ended."""
    ended = curves.groupby("cause")["probability"].last().sum()
    if ended > 1 - 1e-9:
        return float("inf")
    return float(seconds.max()) if len(seconds) else float("nan")


def _at_horizons(curves: pd.DataFrame, horizons: Sequence[float], oldest: float) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = []
    for cause in CAUSES:
        own = curves[curves["cause"] == cause]
        for horizon in horizons:
            name = f"{cause} within {horizon:g} s"
            if not horizon <= oldest:
                rows.append((name, *[float("nan")] * 3))
                continue
            place = int(np.searchsorted(own["seconds"].to_numpy(), horizon, "right")) - 1
            found: Any = own.iloc[place] if place >= 0 else {}
            rows.append((name, *(float(found.get(n, 0.0)) for n in ("probability", "low", "high"))))
    types = {"name": "str", "estimate": "float64", "low": "float64", "high": "float64"}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _thinned(curves: pd.DataFrame) -> pd.DataFrame:
    """Keep points that are evenly many orders apart; the last one stays."""
    parts = []
    for _, own in curves.groupby("cause", sort=False):
        places = np.unique(np.linspace(0, len(own) - 1, _POINTS).round().astype(int))
        parts.append(own.iloc[places])
    return pd.concat(parts, ignore_index=True) if parts else curves
