"""Fitted curves of cost by size: half spread + a * Q**k, with missing samples as bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from toolkit import statistics
from toolkit.arrays import Floats, Ints
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import number_groups, ratio, sum_groups
from toolkit.prepare.provenance import state_provenance
from toolkit.rules.slippage import least_beyond_bps
from toolkit.slippage import _likelihood
from toolkit.statistics import DRAWS, Estimate, Sampling
from toolkit.times import DAY

UNIT_USD = 100_000.0
"""`a` is the impact in bps of an order of this size. Its unit does not depend on `k`."""

LEAST_BPS = 0.005
"""Samples have two decimals, so logarithms use this value instead of 0."""

NAMES = ("half_spread", "a", "k", "sigma")
SIDES = {"buy": "buy_slippage_bps", "sell": "sell_slippage_bps"}
NUMBERS = ("amount_usd", "half_spread_bps", *SIDES.values())
LARGE_MISFIT = 0.1
"""From here on the law is said not to hold: it misses a sampled mean by a tenth of it."""
_KEYS = ["coin", "side"]
_PARAMS = dict.fromkeys([*_KEYS, "name"], "str") | dict.fromkeys(["estimate", "low", "high"], float)


@dataclass(frozen=True, eq=False, kw_only=True)
class SizeMeans:
    """Mean cost by size, as sampled (first row) and as resampled (other rows).

    - ``sizes`` (array of float, (sizes,)): sampled sizes in USD, rising, without the sizes that no
      book could fill
    - ``blocks`` (array of int, (sizes,)): number of blocks of days on which each size was sampled
    - ``bps`` (array of float, (1 + draws, sizes)): mean costs. A sample for which the book was too
      thin counts as its lower bound.
    - ``law`` (array of float, (1 + draws, 4)): half spread, a, k and sigma, fitted to the same
      samples; missing if there is no fit
    """

    sizes: Floats
    blocks: Ints
    bps: Floats
    law: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class SlippageFit(Estimate):
    """Fitted curves of cost by size, one for each coin and side.

    Attributes
    ----------
    params : DataFrame
        One row for each coin, side and figure:

        - ``coin``: coin of the samples
        - ``side``: ``buy`` or ``sell``
        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure; missing if there are too few
          samples to fit
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate

        The figures:

        - ``half_spread``: cost of the smallest orders, in basis points
        - ``a``: cost of 100,000 USD beyond the half spread, in basis points
        - ``k``: exponent of the size, a pure number
        - ``sigma``: standard deviation of the logarithm of the cost around the curve, a pure number
    groups : DataFrame
        One row for each coin and side:

        - ``coin``: coin of the samples
        - ``side``: ``buy`` or ``sell``
        - ``n``: number of samples
        - ``missing``: number of samples for which the book was too thin
        - ``days``: number of days with samples, UTC
        - ``smallest_usd``: smallest sampled size, in USD
        - ``largest_usd``: largest sampled size, in USD
        - ``misfit``: largest error of the curve as a share of a sampled mean, over the sizes that
          every book could fill; missing if there is no such size or no fit
    samples : DataFrame
        The data of the fit, one row for each coin, side and size:

        - ``coin``: coin of the samples
        - ``side``: ``buy`` or ``sell``
        - ``amount_usd``: notional of the samples, in USD
        - ``n``: number of samples
        - ``missing``: number of samples for which the book was too thin
        - ``q50``: median cost, in basis points, in which missing samples count as infinite; missing
          if no sample was filled
        - ``mean``: mean cost, in basis points; a missing sample counts with the smallest cost that
          it can have, so with such samples it is a lower bound; missing if no sample was filled
    draws : mapping
        By coin and side: the number of blocks of days, and the parameters of each resample.
    means : mapping
        By coin and side: the mean cost of each size, as sampled and as resampled. `cost` and
        `capacity` use these, and the curve only beyond the sampled sizes.
    """

    groups: pd.DataFrame
    samples: pd.DataFrame
    draws: Mapping[tuple[str, str], tuple[int, Floats]] = field(repr=False)
    means: Mapping[tuple[str, str], SizeMeans] = field(repr=False)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + "".join(
            f"<p>{escape(group['coin'])}, {group['side']}: {misfit_words(group['misfit'])}</p>"
            for group in self.groups.to_dict("records")
            if group["misfit"] > LARGE_MISFIT
        )


def misfit_words(share: float) -> str:
    """Return a sentence about a curve that does not fit."""
    return f"the law does not hold, it misses a sampled mean by {100 * share:.0f} %"


def fit(
    samples: Frame, *, level: float = 0.95, block_days: int = 1, draws: int = DRAWS, seed: int = 0
) -> SlippageFit:
    """Fit the cost of a market order by size: half spread + a * (Q / 100,000 USD)**k.

    Q is the size of the order in USD, a is the cost of 100,000 USD beyond the half spread in bps,
    and k is the exponent of the size. The fit uses every sample and adds none. A sample has two
    decimals, so it is known to within 0.005 bps. A sample is missing if the book was too thin. The
    fit counts it as a lower bound: such an order costs at least what the smaller sizes of the same
    book imply. The logarithm of the cost scatters around the logarithm of the curve with standard
    deviation `sigma`; a, k and sigma maximise the likelihood.

    Parameters
    ----------
    samples : DataFrame
        `tk.slippage_history` of several amounts and one or many coins. Repeated samples
        count once.
    level : float, default 0.95
        Level of the intervals.
    block_days : int, default 1
        How many days (UTC) are drawn together. Days within a block may depend on each
        other; days of different blocks should not.
    draws : int, default 999
        Number of resamples of days.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    SlippageFit
        A curve for each coin and side. The intervals come from resampled days (UTC), since the
        samples of a book and of a day move together. They are missing for a single day or block,
        and too narrow if days resemble each other for longer than `block_days`. Parameters are
        missing if fewer than two sizes have a value, or if the samples do not determine the slope:
        for example, if only the largest size costs more than the half spread.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `level` is not between 0 and 1, or `block_days` is below 1.

    Notes
    -----
    One curve does not describe every book. In a liquid book small sizes cost half the spread;
    beyond the best prices the cost grows faster than any one power of the size. There the curve can
    miss the mean of a size by half. The intervals of the parameters do not show that: they measure
    the error of the fit, not of its form. Look at `misfit` in ``groups``. `cost` and `capacity` use
    the sampled means.

    If the depth of a book grows with the distance to the power of p, the cost grows with Q**(1/p):
    k = 2/3 for p = 1.5. A size that the best price can fill costs the half spread, also if the
    curve is higher there; k is then an average over the sampled sizes. If the book is too thin for
    a size, only a lower bound of the cost is known. In a test with a quarter of the samples
    missing, k was up to 0.01 too low. Intervals: the score bootstrap of Kline and
    Santos (2012) by day, or by circular blocks of days (Politis and Romano, 1992), expanded for few
    of them as by Hesterberg (2015). A market can be expensive or cheap for many days in a row: draw
    weeks (``block_days=7``) if there are enough of them. In 100 simulations of 120 days with an
    autocorrelation of 0.6 from day to day, intervals at 90 % contained `a` in 62 with single days,
    in 84 with blocks of 5 days and in 87 with blocks of 10.

    Examples
    --------
    Half spread 1, impact 10 bps at 100,000 USD, exponent 1/2:

    >>> import pandas as pd
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6] * 2)
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4 + [86_400_000] * 4, unit="ms", utc=True),
    ...     "coin": "XYZ", "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": (1 + 10 * (usd / 1e5) ** 0.5).round(2),
    ...     "sell_slippage_bps": (1 + 20 * (usd / 1e5) ** 0.5).round(2)})
    >>> found = fit(rows).params.round(2)
    >>> found.loc[found["name"].isin(["a", "k"]), ["side", "name", "estimate"]]
       side name  estimate
    1   buy    a      10.0
    2   buy    k       0.5
    5  sell    a      20.0
    6  sell    k       0.5
    """
    how = Sampling(level, draws, seed, statistics.check_count(block_days, "block_days"))
    table = Table(samples, "samples")
    rows = _read_sides(table)
    drawn, means, figures, all_days = dict[Any, Any](), dict[Any, SizeMeans](), [], list[int]()
    for (coin, side), own in rows.groupby(_KEYS):
        law, days = _fit_law(own, how), own["day"].nunique()
        blocks = statistics.block_count(days, block_days)
        all_days.append(days)
        drawn[coin, side], means[coin, side] = (blocks, law), _mean_costs(own, law, how)
        for name, part in zip(NAMES, law.T, strict=True):
            ends = statistics.bootstrap_interval(part[1:], blocks, level, positive=name != "k")
            figures.append((coin, side, name, part[0], *ends))
    params = pd.DataFrame(figures, columns=[*_PARAMS]).astype(_PARAMS)
    codes, points = number_groups(rows[["side", "coin", "amount_usd"]])
    bps, count = rows["bps"].to_numpy(), len(points)
    n, missing = np.bincount(codes, minlength=count), sum_groups(codes, np.isnan(bps), count)
    mean = sum_groups(codes, rows["paid"].to_numpy(), count) / n
    points = (
        points[[*_KEYS, "amount_usd"]]
        .astype(dict.fromkeys(_KEYS, "str"))
        .assign(
            n=n,
            missing=missing.astype(np.int64),
            q50=statistics.rank_quantiles(bps, codes, n, [0.5])[0],
            mean=np.where(missing < n, mean, np.nan),
        )
    )
    # The mean of a size for which the book was sometimes too thin is not known.
    laws = [means[key].law[0] for key in points[_KEYS].itertuples(index=False, name=None)]
    half, a, k, sigma = np.reshape(laws, (count, len(NAMES))).T
    by_law = (half + a * (points["amount_usd"] / UNIT_USD) ** k) * np.exp(sigma**2 / 2)
    misfit = (by_law / np.maximum(mean, LEAST_BPS) - 1).abs().where(missing == 0)
    groups = points.assign(misfit=misfit).groupby(_KEYS).agg(
        n=("n", "sum"), missing=("missing", "sum"), smallest_usd=("amount_usd", "min"),
        largest_usd=("amount_usd", "max"), misfit=("misfit", "max"),
    )  # fmt: skip
    groups.insert(2, "days", np.array(all_days, dtype=np.int64))
    groups = groups.reset_index()
    facts = {"helper": "slippage.fit", "level": level}
    state_provenance((params, groups, points), {"samples": table.frame}, **facts)
    unit = "day" if block_days == 1 else f"{block_days} days"
    return SlippageFit(
        params=params,
        n=len(rows),
        level=level,
        method=f"half spread + a * (Q / 100,000 USD)**k by maximum likelihood; bootstrap by {unit}",
        groups=groups,
        samples=points,
        draws=drawn,
        means=means,
    )


def _read_sides(table: Table) -> pd.DataFrame:
    """Return both sides of each sample, one below the other.

    Beside its own columns a row has its ``day`` and what was ``paid``: of a missing sample, the
    least that it can have cost.
    """
    rows = table.columns(("timestamp", "coin", *NUMBERS), amounts=NUMBERS)
    rows = rows.assign(ms=table.ms("timestamp"), coin=rows["coin"].astype("str").astype("category"))
    # Samples without a size or without a spread carry no information.
    rows = rows[rows["half_spread_bps"].notna() & (rows["amount_usd"] > 0) & rows["coin"].notna()]
    keys = ["coin", "ms", "amount_usd"]
    sides = rows.rename(columns={name: side for side, name in SIDES.items()})
    rows = sides.melt([*keys, "half_spread_bps"], [*SIDES], "side", "bps").astype(
        {"side": "category"}
    )
    rows = rows.sort_values(["side", *keys, "bps"], kind="stable")
    rows = rows.drop_duplicates(["side", *keys], ignore_index=True)
    book = np.asarray(rows.groupby(["side", *keys[:2]], sort=False).ngroup(), dtype=np.int64)
    usd, bps, least = (rows[name].to_numpy() for name in ("amount_usd", "bps", "half_spread_bps"))
    # The known samples of its book tell the least that a missing sample can have cost.
    known, least = np.flatnonzero(~np.isnan(bps)), least.copy()
    rank = np.cumsum(~np.isnan(bps)) - 1  # of the last known sample, maybe of an earlier book
    thin = np.flatnonzero(np.isnan(bps) & (rank >= 0))
    thin = thin[book[known[rank[thin]]] == book[thin]]
    larger, smaller = known[rank[thin]], known[np.maximum(rank[thin] - 1, 0)]
    has_two = (rank[thin] > 0) & (book[smaller] == book[thin])
    less = (np.where(has_two, usd[smaller], 0.0), np.where(has_two, bps[smaller], 0.0))
    sign = np.where(rows["side"] == "buy", 1, -1)[thin]
    beyond = least_beyond_bps(usd[thin], (usd[larger], bps[larger]), less, sign)
    least[thin] = np.fmax(beyond, least[thin])
    return rows.assign(day=rows["ms"] // DAY, paid=np.where(np.isnan(bps), least, bps))


def _mean_costs(group: pd.DataFrame, law: Floats, how: Sampling) -> SizeMeans:
    """Return the mean costs of one side's samples, and of each resample of days.

    - ``law`` (array of float, (1 + draws, 4)): as in `SizeMeans`; both draw the same days
    """
    sizes = np.unique(group["amount_usd"][group["bps"].notna()].to_numpy())
    cells = group.groupby(["day", "amount_usd"])["paid"]
    made = (cells.sum(), cells.size())
    parts = [each.unstack(fill_value=0)[sizes].to_numpy(np.float64) for each in made]
    above, below = np.hsplit(how.sums(np.hstack(parts)), 2)
    blocks = -(-(parts[1] > 0).sum(axis=0) // how.block)
    return SizeMeans(sizes=sizes, blocks=blocks, bps=ratio(above, below), law=law)


def _fit_law(group: pd.DataFrame, how: Sampling) -> Floats:
    """Return the parameters, in the order of `NAMES`, of the estimate and of each resample."""
    unknown = np.full((1 + how.draws, len(NAMES)), np.nan)
    known = group["bps"].notna().to_numpy()
    usd, paid = group["amount_usd"].to_numpy(), group["paid"].to_numpy()
    spread = group["half_spread_bps"].to_numpy()
    if len(np.unique(usd[known])) < 2:
        return unknown
    # A value has two decimals, so it lies between these bounds.
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(paid - LEAST_BPS, 0.0))
        high = np.log(np.where(known, np.maximum(paid, 0.0) + LEAST_BPS, np.inf))
    rows = _likelihood.BoundedCosts(low, high, np.log(usd / UNIT_USD), spread)
    theta = _likelihood.maximise_likelihood(rows)
    if theta is None or _likelihood.is_at_an_end(theta):
        return unknown
    days = np.unique(group["day"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    drawn = _likelihood.resample_estimates(theta, rows, days, how)
    log_a, k, log_sigma = np.vstack([theta, drawn]).T
    _, spreads, _ = statistics.bootstrap_ratios([spread], np.ones(len(spread)), days, how)
    half_spread = np.append(spread.mean(), spreads)
    return np.stack([half_spread, np.exp(log_a), k, np.exp(log_sigma)], axis=1)
