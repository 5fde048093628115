"""What holding a position for its funding leaves after getting in and out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common.bootstrap import DRAWS, block_count, bootstrap_interval
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.funding.rates import HOURS_A_YEAR, hourly, middles
from toolkit.analysis.market.slippage_fit import SlippageFit, fit
from toolkit.analysis.market.slippage_means import blocks_at, expected, place

Floats = npt.NDArray[np.float64]

_SIDES = {"long": (-1.0, "buy", "sell"), "short": (1.0, "sell", "buy")}
_RESULT = {
    "coin": "str", "side": "str", "amount_usd": "float64", "hours": "float64",
    "funding_bps": "float64", "entry_bps": "float64", "exit_bps": "float64",
    "fees_bps": "float64", "net_bps": "float64", "low": "float64", "high": "float64",
    "net_usd": "float64", "net_annual": "float64", "break_even_hours": "float64",
    "range": "str", "n": "int64",
}  # fmt: skip


def carry(
    funding: Any,
    samples: Any,
    usd: float,
    *,
    days: float,
    fee_bps: float,
    side: str = "short",
    block_hours: int = 24,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    interval_hours: float | None = None,
) -> pd.DataFrame:
    """Say what a position earns in funding, net of what it costs to open and close at once.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, funding_rate`` (and ``n_samples``; pandas, Polars, DuckDB); an hour's rate
        counts once, and a row that sums n payments is for n hours.
    samples : DataFrame or SlippageFit
        As `tk.slippage_history` gives them, of several amounts, or what `tk.slippage.fit` made
        of them. A sample given twice counts once.
    usd : float
        Notional, held constant.
    days : float
        How long it is held.
    fee_bps : float
        Trading fee of one fill, in basis points of notional: 4.5 is paid, -0.3 is a rebate.
        It falls due twice.
    side : {"short", "long"}
        Longs pay positive rates, shorts receive them.
    block_hours : int, default 24
        As in `annualised`.
    level, draws, seed
        Of the intervals; number of resamples (a `SlippageFit` must have as many); their seed.
    interval_hours : float, optional
        As in `annualised`: how many hours one payment is for.

    Returns
    -------
    DataFrame
        pandas, one row for each coin of `funding`, sorted. Everything is signed as money:
        positive is good for the account.

        - ``coin``, ``side``, ``amount_usd``, ``hours``;
        - ``funding_bps``: of the mean rate over that time; ``entry_bps`` and ``exit_bps``:
          expected slippage of a market order; ``fees_bps``; ``net_bps``, their sum, with ``low``
          and ``high``: of the expectation, not of a single outcome;
        - ``net_usd``; ``net_annual``, share of the notional a year;
        - ``break_even_hours``: after which funding has paid the costs; missing where it never
          does;
        - ``range``: whether the size was ``sampled``, or lies ``between``, ``below`` or ``above``
          the sampled ones, as in `tk.slippage.cost`; empty, and the net missing, where the coin
          has no curve;
        - ``n``: hours with a rate.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `usd`, `days`, `side`, `level` or the number of draws makes no sense.

    Notes
    -----
    Rates are taken to go on as in the sample. Their interval comes from blocks of hours, that of
    the costs from days, drawn independently of each other.

    Examples
    --------
    A short position of 100,000 USD for 10 days at 0.01 % an hour: 240 bps of funding, less 11
    bps of slippage and 4.5 of fees twice.

    >>> hours = pd.to_datetime(range(48), unit="h", utc=True)
    >>> rates = pd.DataFrame({"coin": "XYZ", "time": hours, "funding_rate": 1e-4})
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6])
    >>> bps = (1 + 10 * (usd / 1e5) ** 0.5).round(2)
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4, unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": bps, "sell_slippage_bps": bps})
    >>> found = carry(rates, rows, 1e5, days=10, fee_bps=4.5)
    >>> found[["funding_bps", "entry_bps", "exit_bps", "fees_bps", "net_bps"]].round(1)
       funding_bps  entry_bps  exit_bps  fees_bps  net_bps
    0        240.0      -11.0     -11.0      -9.0    209.0
    """
    check_level(level)
    if side not in _SIDES:
        raise ValueError(f"side must be 'short' or 'long', not {side!r}")
    if not (usd > 0 and days > 0):
        raise ValueError(f"usd={usd!r} and days={days!r} must be positive")
    fitted = samples if isinstance(samples, SlippageFit) else fit(samples, draws=draws, seed=seed)
    sign, entering, leaving = _SIDES[side]
    hours, fees = 24.0 * days, -2.0 * fee_bps
    made = []
    for coin, rates, _ in hourly(funding, interval_hours):
        mean = middles(rates, [0], block_hours, draws, seed + 1)[:, 0]
        earned = sign * mean * hours * 1e4
        entry, blocks_in, where = _cost(fitted, coin, entering, usd, draws)
        exit_, blocks_out, _ = _cost(fitted, coin, leaving, usd, draws)
        net = earned + entry + exit_ + fees
        clusters = min(block_count(len(rates), block_hours), blocks_in, blocks_out)
        low, high = bootstrap_interval(net[1:], clusters, level)
        costs = -(entry[0] + exit_[0] + fees)
        hourly_bps = float(earned[0]) / hours
        parts = (earned[0], entry[0], exit_[0], fees, net[0], low, high)
        money = net[0] / 1e4 * usd, net[0] / 1e4 / hours * HOURS_A_YEAR
        row = (coin, side, usd, hours, *parts, *money, _until(costs, hourly_bps), where)
        made.append((*row, len(rates)))
    result = pd.DataFrame(made, columns=list(_RESULT)).astype(_RESULT)
    inputs = result_provenance({"funding": funding, "samples": fitted.params})
    result.attrs["toolkit"] = {**inputs, "helper": "funding.carry", "level": level}
    return result


def _cost(
    fitted: SlippageFit, coin: str, side: str, usd: float, draws: int
) -> tuple[Floats, int, str]:
    """Give what a market order gains, below 0, as estimated and drawn; blocks; its range."""
    if (coin, side) not in fitted.means:
        return np.full(1 + draws, np.nan), 0, ""
    means = fitted.means[coin, side]
    if len(means.law) != 1 + draws:
        raise ValueError(
            f"the fit has {len(means.law) - 1} draws, not {draws}: pass draws= to both"
        )
    bps = expected(means, usd)
    return -bps, blocks_at(means, usd), place(means, usd) if np.isfinite(bps[0]) else ""


def _until(costs: float, hourly_bps: float) -> float:
    if costs != costs:
        return float("nan")
    if costs <= 0:
        return 0.0
    return costs / hourly_bps if hourly_bps > 0 else float("nan")
