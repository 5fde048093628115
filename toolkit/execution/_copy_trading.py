"""What copying an account with a delay would have brought."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from toolkit.execution._gains import Gain, estimate_gains
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import list_keys, sum_groups
from toolkit.prepare.prices import LATEST, list_spans, span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import group_trades
from toolkit.statistics.bootstrap import DRAWS, Sampling
from toolkit.times import SECOND

_FIGURES: Final = ("delay", "fills", "volume_usd", "priced", "own_usd", "delay_usd", "slippage_usd",
            "copied_usd", "cost_bps", "low", "high", "clusters", "age_seconds")  # fmt: skip


def copy_trading(
    fills: Frame,
    prices: Frame,
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
        The columns of `by`, then for the fills with a fresh price at the copy's time and a
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
        - ``age_seconds``: mean age of the prices at the copies' times, in seconds.

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
    the prices here. If a group has both sides of a trade, the taker is copied, because the gains of
    both sides cancel. Fees are those of the copier's account, and not part of the figures.

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
    how = Sampling(level, draws, seed)
    keys = list_keys(by, _FIGURES)
    table = Table(fills, "fills")
    grouped = group_trades(table, keys, cluster).of_one_side()
    trades, codes, groups, _ = grouped
    marks = reference_prices(table, prices, price, max_age)
    age_ms, number = span_ms(max_age, "max_age"), len(groups)
    traded = trades.coin.present()
    stated = (
        slippage_bps if isinstance(slippage_bps, Mapping) else dict.fromkeys(traded, slippage_bps)
    )
    for name, value in stated.items():
        if not value >= 0:
            raise ValueError(
                f"slippage_bps of {name} must be 0 or more, not {value!r}: the copier pays it"
            )
    if missing := sorted(set(traded) - set(stated)):
        raise ValueError(
            f"slippage_bps has no value for {', '.join(missing)}. Add them to the mapping"
        )
    share = trades.coin.facts(lambda name: float(stated.get(name, np.nan))) / 1e4
    end, _ = marks.last_at(trades.coin, np.full(len(trades), LATEST))
    made = []
    for span in list_spans(delays, "delays"):
        copied, age = marks.after(trades.coin, trades.ms, span, age_ms)
        parts = pd.DataFrame(
            {
                "own_usd": trades.sign * (end - trades.px) * trades.sz,
                "delay_usd": trades.sign * (trades.px - copied) * trades.sz,
                "slippage_usd": -share * copied * trades.sz,
            }
        )
        parts[parts.isna().any(axis=1)] = np.nan
        cost = -(parts["delay_usd"] + parts["slippage_usd"]).to_numpy()
        found = estimate_gains(grouped, [Gain(cost, trades.usd, age)], how)
        sums = parts.groupby(codes).sum(min_count=1).reindex(range(number))
        made.append(
            groups.assign(
                delay=span / SECOND,
                fills=np.bincount(codes, minlength=number),
                volume_usd=sum_groups(codes, np.nan_to_num(trades.usd), number),
                priced=found["n"],
                **sums,
                copied_usd=sums.sum(axis=1, skipna=False),
                cost_bps=found["estimate"],
                **found[["low", "high", "clusters", "age_seconds"]],
            )
        )
    result = pd.concat(made).sort_index(kind="stable")
    return finish(
        result, {"fills": table.frame, "prices": prices},
        helper="execution.copy_trading", by=keys, price_source=marks.source,
    )  # fmt: skip
