"""Net return of a position that is open for its funding, after the cost of entry and exit."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.funding._rates import HOURS_A_YEAR, hourly_rates, trimmed_means
from toolkit.prepare.door import Frame
from toolkit.prepare.provenance import finish
from toolkit.slippage._cost import expected_cost
from toolkit.slippage._fit import SlippageFit, fit
from toolkit.statistics import DRAWS, block_count, bootstrap_interval, check_level, check_positive

_SIDES = {"long": (-1.0, "buy", "sell"), "short": (1.0, "sell", "buy")}
_RESULT = {
    "coin": "str", "side": "str", "amount_usd": "float64", "hours": "float64",
    "funding_bps": "float64", "entry_bps": "float64", "exit_bps": "float64",
    "fees_bps": "float64", "net_bps": "float64", "low": "float64", "high": "float64",
    "net_usd": "float64", "net_annual": "float64", "break_even_hours": "float64",
    "range": "str", "n": "int64",
}  # fmt: skip


def carry(
    funding: Frame,
    samples: Frame | SlippageFit,
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
    """Compute what a position earns in funding, net of the cost of entry and exit.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, funding_rate`` (and ``n_samples``). The rate of an hour counts once, and a row
        that sums n payments is for n hours.
    samples : DataFrame or SlippageFit
        `tk.slippage_history` of several amounts, or the result of `tk.slippage.fit`. Repeated
        samples count once.
    usd : float
        Notional of the position, which stays constant.
    days : float
        How long the position is open.
    fee_bps : float
        Trading fee of one fill, in basis points of notional: 4.5 is paid, -0.3 is a rebate. It is
        due twice.
    side : {"short", "long"}
        A long position pays positive rates, a short position receives them.
    block_hours : int, default 24
        As for `annualised`.
    level, draws, seed
        Level of the intervals; number of resamples (a `SlippageFit` must have the same number);
        seed of the resamples.
    interval_hours : float, optional
        As for `annualised`: how many hours one payment is for.

    Returns
    -------
    DataFrame
        One row for each coin of `funding`, sorted. Every amount is positive if it is good
        for the account.

        - ``coin``: coin of the position.
        - ``side``: ``long`` or ``short``.
        - ``amount_usd``: notional of the position, in USD.
        - ``hours``: time that the position is open, in hours.
        - ``funding_bps``: funding at the mean rate while the position is open, in basis points of
          notional.
        - ``entry_bps``: expected slippage of the market order that opens the position, in basis
          points, negative.
        - ``exit_bps``: expected slippage of the market order that closes the position, in basis
          points, negative.
        - ``fees_bps``: trading fees of both orders, in basis points; negative is paid.
        - ``net_bps``: sum of funding, slippage and fees, in basis points.
        - ``low``: lower end of the interval of the expected `net_bps` (not of a single outcome).
        - ``high``: upper end of the interval of the expected `net_bps`.
        - ``net_usd``: sum of funding, slippage and fees, in USD.
        - ``net_annual``: share of the notional that the position earns a year, net.
        - ``break_even_hours``: hours until funding has paid the costs; missing if it never does.
        - ``range``: position of the size among the sampled sizes, as in `tk.slippage.cost`:
          ``sampled``, ``between``, ``below`` or ``above``. It is empty, and the net is missing, if
          the coin has no curve.
        - ``n``: number of hours with a rate.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `usd`, `days`, `side`, `level` or the number of draws is not valid.

    Notes
    -----
    The expectation assumes that rates continue as in the sample. The interval of the rates comes
    from resampled blocks of hours, and that of the costs from resampled days. Both are drawn
    independently. In simulated series (40 days of rates with an autocorrelation of 0.8, 20 days of
    costs), intervals of 95 % contained the true value in 95 % of cases.

    Examples
    --------
    A short position of 100,000 USD for 10 days at 0.01 % an hour: 240 bps of funding, less 11 bps
    of slippage and 4.5 bps of fees, both twice.

    >>> import pandas as pd
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
    check_positive(usd=usd, days=days)
    fitted = samples if isinstance(samples, SlippageFit) else fit(samples, draws=draws, seed=seed)
    sign, entering, leaving = _SIDES[side]
    hours, fees = 24.0 * days, -2.0 * fee_bps
    figures = []
    for coin, rates, _ in hourly_rates(funding, interval_hours):
        mean = trimmed_means(rates, [0], block_hours, draws, seed + 1)[:, 0]
        earned = sign * mean * hours * 1e4
        entry, blocks_in, where = _order_cost(fitted, coin, entering, usd, draws)
        exit_, blocks_out, _ = _order_cost(fitted, coin, leaving, usd, draws)
        net = earned + entry + exit_ + fees
        clusters = min(block_count(len(rates), block_hours), blocks_in, blocks_out)
        parts = (earned[0], entry[0], exit_[0], fees, net[0])
        interval = bootstrap_interval(net[1:], clusters, level)
        money = net[0] / 1e4 * usd, net[0] / 1e4 / hours * HOURS_A_YEAR
        even = _break_even_hours(-(entry[0] + exit_[0] + fees), earned[0] / hours)
        facts = (where, len(rates))
        figures.append((coin, side, usd, hours, *parts, *interval, *money, even, *facts))
    result = pd.DataFrame(figures, columns=list(_RESULT)).astype(_RESULT)
    inputs = {"funding": funding, "samples": fitted.params}
    return finish(result, inputs, helper="funding.carry", level=level)


def hedged_carry(
    funding: Frame,
    samples: Frame | SlippageFit,
    usd: float,
    *,
    days: float,
    fee_bps: float,
    spot_bps: float | Mapping[str, float],
    spot_fee_bps: float,
    basis_bps: float | Mapping[str, float] = 0.0,
    leverage: float = 1.0,
    block_hours: int = 24,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    interval_hours: float | None = None,
) -> pd.DataFrame:
    """Compute what a short perp earns that is hedged with spot, net of all four orders.

    Parameters
    ----------
    funding, samples, usd, days, fee_bps, block_hours, level, draws, seed, interval_hours
        As for `carry`; `usd` is the notional of each leg.
    spot_bps : float or mapping of coin to float
        Slippage of one spot order of this size, in basis points, positive; coins of `funding`. The
        net of a coin that a mapping lacks is missing.
    spot_fee_bps : float
        Trading fee of one spot fill, in basis points; positive is paid.
    basis_bps : float or mapping of coin to float, default 0
        By how much the perp is above spot at the entry, less the same at the exit, in basis points:
        the hedged position earns what the perp falls towards spot.
    leverage : float, default 1
        Notional of the perp over its margin. The capital is ``usd * (1 + 1 / leverage)``.

    Returns
    -------
    DataFrame
        One row for each coin, sorted; positive is good for the account:

        - ``coin``: coin of the position.
        - ``amount_usd``: notional of each leg, in USD.
        - ``capital_usd``: spot and margin, in USD.
        - ``hours``: time that the position is open, in hours.
        - ``funding_bps``: funding of the perp, in basis points of the notional of one leg.
        - ``basis_bps``: gain from the change of the basis, in basis points.
        - ``perp_bps``: slippage of both orders of the perp, in basis points, negative.
        - ``spot_bps``: slippage of both spot orders, in basis points, negative.
        - ``fees_bps``: trading fees of all four fills, in basis points; negative is paid.
        - ``net_bps``: sum of funding, basis, slippage and fees, in basis points.
        - ``low``: lower end of the interval of the expected `net_bps`, as for `carry`.
        - ``high``: upper end of the interval of the expected `net_bps`.
        - ``net_usd``: sum of funding, basis, slippage and fees, in USD.
        - ``net_annual``: share of the capital that the position earns a year, net.
        - ``break_even_hours``: hours until funding has paid the rest; missing if it never does.
        - ``n``: number of hours with a rate.

    Raises
    ------
    MissingColumns, ValueError
        As for `carry`; ValueError also if `leverage` is not positive.

    Notes
    -----
    Price changes of the two legs cancel, apart from the basis. The interval has the errors of the
    rates and of the perp's slippage only. Interest on the capital is not a cost here.

    Examples
    --------
    The example of `carry`, with 6 bps of slippage and 7 bps of fees for each spot order:

    >>> import pandas as pd
    >>> hours = pd.to_datetime(range(48), unit="h", utc=True)
    >>> rates = pd.DataFrame({"coin": "XYZ", "time": hours, "funding_rate": 1e-4})
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6])
    >>> bps = (1 + 10 * (usd / 1e5) ** 0.5).round(2)
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4, unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": bps, "sell_slippage_bps": bps})
    >>> found = hedged_carry(
    ...     rates, rows, 1e5, days=10, fee_bps=4.5, spot_bps=6.0, spot_fee_bps=7.0)
    >>> found[["funding_bps", "perp_bps", "spot_bps", "fees_bps", "net_bps"]].round(1)
       funding_bps  perp_bps  spot_bps  fees_bps  net_bps
    0        240.0     -22.0     -12.0     -23.0    183.0
    """
    check_positive(leverage=leverage)
    perp = carry(
        funding, samples, usd, days=days, fee_bps=fee_bps, block_hours=block_hours, level=level,
        draws=draws, seed=seed, interval_hours=interval_hours,
    )  # fmt: skip
    spot, basis = (
        perp["coin"].map(given) if isinstance(given, Mapping) else pd.Series(given, perp.index)
        for given in (spot_bps, basis_bps)
    )
    spot, basis = spot.astype("float64"), basis.astype("float64")
    capital = perp["amount_usd"] * (1 + 1 / leverage)
    rest = basis - 2.0 * spot - 2.0 * spot_fee_bps
    net = perp["net_bps"] + rest
    hourly = perp["funding_bps"] / perp["hours"]
    made = {
        **perp[["coin", "amount_usd"]],
        "capital_usd": capital,
        **perp[["hours", "funding_bps"]],
        "basis_bps": basis,
        "perp_bps": perp["entry_bps"] + perp["exit_bps"],
        "spot_bps": -2.0 * spot,
        "fees_bps": perp["fees_bps"] - 2.0 * spot_fee_bps,
        "net_bps": net,
        "low": perp["low"] + rest,
        "high": perp["high"] + rest,
        "net_usd": net / 1e4 * usd,
        "net_annual": net / 1e4 * usd / capital / perp["hours"] * HOURS_A_YEAR,
        "break_even_hours": [*map(_break_even_hours, perp["funding_bps"] - net, hourly)],
        "n": perp["n"],
    }
    result = pd.DataFrame(made).astype({"break_even_hours": "float64"})
    result.attrs["toolkit"] = perp.attrs["toolkit"] | {"helper": "funding.hedged_carry"}
    return result


def _order_cost(
    fitted: SlippageFit, coin: str, side: str, usd: float, draws: int
) -> tuple[Floats, int, str]:
    """Return the gain of a market order (estimate and draws, negative), its blocks and range."""
    if (coin, side) not in fitted.means:
        return np.full(1 + draws, np.nan), 0, ""
    means = fitted.means[coin, side]
    if len(means.law) != 1 + draws:
        raise ValueError(
            f"the fit has {len(means.law) - 1} draws, not {draws}: pass the same draws= to "
            "tk.slippage.fit and tk.funding.carry"
        )
    bps, blocks, place = expected_cost(means, usd)
    return -bps, blocks, place if np.isfinite(bps[0]) else ""


def _break_even_hours(costs: float, hourly_bps: float) -> float:
    if costs <= 0:
        return 0.0
    return costs / hourly_bps if hourly_bps > 0 else float("nan")
