"""What copying an account with a delay would have brought."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import grouping
from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratio
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.execution.fill_quality import (
    group_fills,
    key_types,
    prices_after,
    read_reference_prices,
)
from toolkit.analysis.execution.markout import read_clusters, result_facts
from toolkit.analysis.execution.prices import list_spans, span_ms

_FIGURES = {
    "fills": "int64", "volume_usd": "float64", "priced": "int64", "own_usd": "float64",
    "delay_usd": "float64", "slippage_usd": "float64", "copied_usd": "float64",
    "cost_bps": "float64", "low": "float64", "high": "float64", "clusters": "int64",
}  # fmt: skip


def copy_trading(
    fills: IntoFrame,
    prices: IntoFrame,
    delays: Sequence[str | float] = ("1s", "10s", "1m", "5m"),
    *,
    slippage_bps: float | Mapping[str, float] = 0.0,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = None,
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute what a copier would have gained by trading the same sizes with a delay.

    Parameters
    ----------
    fills : DataFrame
        Fills of the copied account: ``coin, px, sz, side, time`` and the columns of `by`. Repeated
        rows count once.
    prices : DataFrame
        Mids of the market over the time of the fills, as for `markout`.
    delays : sequence of str or float
        Time between a fill and its copy: text such as ``"10s"``, or seconds.
    slippage_bps : float or mapping of coin to float, default 0
        What the copier pays against the mid, in basis points, such as half the spread and the
        impact of the size (`tk.slippage.cost`).
    price, max_age, cluster, level, draws, seed
        As for `markout`.
    by : str, list of str or None
        Groups, as for `fill_quality`.

    Returns
    -------
    DataFrame
        pandas: the columns of `by`, then for the fills with a fresh price at the copy's time and a
        last price of their coin:

        - ``delay``: time from the fill of the account to that of the copier, in seconds.
        - ``fills``: number of fills.
        - ``volume_usd``: volume of all fills, in USD.
        - ``priced``: number of fills with a side, a price at the copy's time and a last price; the
          gains are of these fills.
        - ``own_usd``: gain of the account from its fills to the last price of each coin, without
          fees, in USD.
        - ``delay_usd``: gain that the delay adds, in USD; negative if prices run ahead of the
          copier.
        - ``slippage_usd``: gain that slippage adds, in USD, at most 0.
        - ``copied_usd``: gain of the copier: ``own_usd + delay_usd + slippage_usd``.
        - ``cost_bps``: ``-(delay_usd + slippage_usd)`` in basis points of the priced volume;
          positive if the copier does worse than the account.
        - ``low``: lower end of the interval of `cost_bps`, bootstrap by cluster.
        - ``high``: upper end of the interval of `cost_bps`, bootstrap by cluster.
        - ``clusters``: number of clusters.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time, `level` or `slippage_bps` is not valid, or the prices are those of
        trades.

    Notes
    -----
    With s = 1 for buys and -1 for sells, price of the copy q, last price e: the account gains
    ``s * (e - px) * sz`` and the copier ``s * (e - q) * sz``. The copier's own trades do not move
    the prices here. Fees are those of the copier's account, and not part of the figures.

    Examples
    --------
    Bought 2 at 100. A second later the mid is 101, in the end it is 104. The copier pays 10 bps.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 101.0, 104.0],
    ...     "time": pd.to_datetime([900, 2000, 9000], unit="ms", utc=True)})
    >>> copy_trading(fills, mids, ["1s"], slippage_bps=10.0)[
    ...     ["delay", "own_usd", "delay_usd", "slippage_usd", "copied_usd"]].values.tolist()
    [[1.0, 8.0, -2.0, -0.202, 5.798]]
    """
    check_level(level)
    keys = grouping.list_keys(by, ("delay", *_FIGURES))
    rows = read_clusters(fills, keys, cluster)
    marks = read_reference_prices(fills, prices, price, rows, max_age)
    age_ms = span_ms(max_age, "max_age")
    paid = _slippage_of(rows, slippage_bps) / 1e4
    sign, sz = rows["_sign"].to_numpy(np.float64), rows["sz"].to_numpy(np.float64)
    end, _ = marks.last_at(rows["coin"], np.full(len(rows), np.inf))
    is_whole = rows[["px", "_sign"]].notna().all(axis=1).to_numpy()
    made = []
    for span in list_spans(delays, "delays"):
        copy, _ = prices_after(rows, marks, span, age_ms)
        known = ~np.isnan(copy * end * sz) & is_whole
        table = rows.assign(
            _known=known,
            _own=sign * (end - rows["px"].to_numpy()) * sz,
            _delay=sign * (rows["px"].to_numpy() - copy) * sz,
            _slippage=-paid * copy * sz,
        )
        for key, group in group_fills(table, keys):
            made.append((*key, span / 1000, *_copy_figures(group, level, draws, seed)))
    types = {**key_types(rows, keys), "delay": "float64", **_FIGURES}
    result = pd.DataFrame(made, columns=list(types)).astype(types)
    result = result.sort_values([*keys, "delay"], kind="stable", ignore_index=True)
    result.attrs["toolkit"] = result_facts("copy_trading", fills, prices, keys, marks.source)
    return result


def _slippage_of(rows: pd.DataFrame, slippage_bps: float | Mapping[str, float]) -> pd.Series:
    if not isinstance(slippage_bps, Mapping):
        slippage_bps = dict.fromkeys(rows["coin"].unique(), float(slippage_bps))
    for coin, value in slippage_bps.items():
        if not value >= 0:
            raise ValueError(
                f"slippage_bps of {coin} must be 0 or more, not {value!r}: the copier pays it"
            )
    if missing := sorted(set(rows["coin"]) - set(slippage_bps)):
        raise ValueError(
            f"slippage_bps has no value for {', '.join(missing)}. Add them to the mapping"
        )
    return rows["coin"].map(slippage_bps).astype("float64")


def _copy_figures(
    group: pd.DataFrame, level: float, draws: int, seed: int
) -> tuple[float | int, ...]:
    known = group[group["_known"]]
    base = known["_usd"].to_numpy(np.float64)
    cost = -1e4 * (known["_delay"] + known["_slippage"]).to_numpy(np.float64)
    codes = known["_cluster"].to_numpy()
    bps, values, count = bootstrap_ratio(cost, base, codes, draws=draws, seed=seed)
    parts = [float(known[name].sum(min_count=1)) for name in ("_own", "_delay", "_slippage")]
    return (
        len(group), float(group["_usd"].sum()), len(known), *parts, sum(parts), bps,
        *bootstrap_interval(values, count, level), count,
    )  # fmt: skip
