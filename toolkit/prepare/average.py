"""Average entry prices and expected closed PnL, step by step.

Perps (`toolkit.rules.closed_pnl`): only a fill that opens moves the average. It is then
``w * average + (1 - w) * px``, with ``w`` the size before the fill as a share of the size after it.
A closing fill takes the average, truncated to 6 - szDecimals decimals. Spot and outcome tokens
(`toolkit.rules.spot_cost`): the average cost of a balance, which is not truncated.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.fills import Fills
from toolkit.prepare.groups import number_rows, row_before, split_groups
from toolkit.prepare.money import is_perp
from toolkit.prepare.steps import Steps
from toolkit.rules.closed_pnl import apply_perp_fill_2023, price_decimals
from toolkit.rules.spot_cost import WEI, CostBasis, adjust_balance, apply_spot_fill, swap_tokens

_SNAP: Final = 1e-7
"""A float average this close below a whole tick is the whole tick."""

_CENT: Final = 10.0**WEI
"""Units of the exchange's spot money in one USD."""

SizeDecimals = Mapping[str, int] | Frame
"""Coin -> size decimals, or a frame of `tk.meta`."""


class Average(NamedTuple):
    """Prices after each step, in the order of the steps; NaN if the history does not tell.

    - ``entry``: average entry price of the position after the fill
    - ``expected``: closed PnL by the rule
    - ``gap``: size that came (+) or left (-) before the fill without a fill, in units of the coin;
      on spot without rounding
    """

    entry: Floats
    expected: Floats
    gap: Floats


def average_prices(fills: Fills, sz_decimals: SizeDecimals) -> Average:
    """Return entry prices and closed PnL by the rules of the exchange.

    - ``sz_decimals``: size decimals of perps; prices of other perps are not known
    """
    steps, px = fills.steps, fills.table.number("px")[fills.steps.rows]
    decimals = _decimals(steps, sz_decimals)
    known: Average | None = fills.averages.get(key := decimals.tobytes())
    if known is not None:
        return known
    # The average after a fill is `old * average + new`.
    start, end, change = steps.start, steps.end, np.abs(steps.change)
    opens = (start == 0) | ((start > 0) == (steps.change > 0))
    flips = ~opens & (end != 0) & ((end > 0) != (start > 0))
    late = (steps.first | steps.is_gap) & (start != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        old = np.where(opens & (start != 0) & ~late, np.abs(start) / np.abs(end), 0.0)
        new = np.where(opens, px * change / np.abs(end), px)
    new[late & ~flips] = np.nan
    moves, average = opens | flips | late, np.nan
    averages = [np.nan]
    for share, part in zip(old[moves].tolist(), new[moves].tolist(), strict=True):
        average = share * average + part if share else part
        averages.append(average)
    now = np.array(averages)[np.cumsum(moves)]
    then = np.where(late, np.nan, row_before(now, np.nan))
    ticks = np.power(10.0, decimals)
    now, then = (np.floor(each * ticks + _SNAP) / ticks for each in (now, then))
    gain = np.minimum(np.abs(start), change) / steps.scale * (px - then)
    expected: Floats = np.where(opens, np.where(np.isnan(now), np.nan, 0.0), np.sign(start) * gain)
    entry = np.where(end == 0, np.nan, now)
    gap = np.where(steps.same_start | steps.spot, 0, steps.gap)
    if steps.spot.any():
        _add_spot(fills, px, entry, expected, gap)
    fills.averages[key] = found = Average(entry, np.round(expected, WEI), gap / steps.scale)
    return found


def expected_2023(fills: Fills, sz_decimals: SizeDecimals) -> Floats:
    """Return the closed PnL of perps by the rule of 2023, fill by fill."""
    steps, decimals = fills.steps, _decimals(fills.steps, sz_decimals)
    units = np.rint(fills.table.number("px")[steps.rows] * _CENT).astype(np.int64)
    columns = (steps.first | steps.is_gap, steps.start, steps.change, units, 10 ** (WEI - decimals))
    expected, known, entry = np.full(len(steps), np.nan), False, 0
    walk = zip(*(column.tolist() for column in columns), strict=True)
    for step, (begins, start, change, px, tick) in enumerate(walk):
        if begins:
            known, entry = start == 0, 0
        end = start + change
        if tick != tick:
            continue
        if known:
            gain, _, entry = apply_perp_fill_2023(start, entry, change, px, int(tick))
            expected[step] = gain / _CENT / steps.scale[step]
        elif end == 0 or (end > 0) != (start > 0):
            known, (_, _, entry) = True, apply_perp_fill_2023(0, 0, end, px, int(tick))
    return np.round(expected, WEI)


def _decimals(steps: Steps, sz_decimals: SizeDecimals) -> Floats:
    """Return the decimals of each step's entry price; NaN if the rule of perps does not apply."""
    if isinstance(sz_decimals, Mapping):
        pairs = [(str(coin), float(places)) for coin, places in sz_decimals.items()]
    else:
        meta = Table(sz_decimals, "sz_decimals")
        meta.require(("name", "sz_decimals"))
        names, places = meta.text("name"), meta.number("sz_decimals").tolist()
        coins = (names.values[code] for code in names.codes.tolist())
        pairs = list(zip(coins, places, strict=True))
    known = {coin: int(places) for coin, places in pairs if places == places and is_perp(coin)}
    by_coin = [price_decimals(known[coin]) if coin in known else np.nan for coin in steps.coins]
    return np.asarray(np.array(by_coin, dtype=np.float64)[steps.coin])


# ASSUMED: Base tokens of a rebate join the balance at no cost.
def _add_spot(fills: Fills, px: Floats, entry: Floats, expected: Floats, gap: Ints) -> None:
    """Fill in entry price, closed PnL and gaps of spot and outcome tokens."""
    steps, groups = fills.steps, swap_groups(fills)
    places = np.flatnonzero(steps.spot)
    if groups:  # a conversion connects chains, so all of them go on in the order of time
        places = places[np.argsort(steps.ms[places], kind="stable")]
    # With prices in units of 1e-8, a cost of 1e-8 USD is as many units as a token has.
    units = (np.rint(px * _CENT).astype(np.int64), np.maximum(steps.scale, 1).astype(np.int64))
    columns = (steps.chain, steps.start, steps.change, steps.fee, steps.tolerance, *units)
    rows = zip(*(column[places].tolist() for column in columns), strict=True)
    events = dict(zip(places.tolist(), rows, strict=True))
    held: dict[int, CostBasis] = {}
    allowed: dict[int, int] = {}
    for place, (_, _, change, fee, _, price, unit) in events.items():
        legs = groups.get(place, [place])
        if place != legs[0]:
            continue
        before, after = list[CostBasis](), list[CostBasis]()
        for leg in legs:
            chain, start, _, _, tolerance, *_ = events[leg]
            basis = held.get(chain, CostBasis(start, 0, start))
            if missing := start - basis.size:
                gap[leg] = missing if abs(missing) > allowed[chain] else 0
                basis = adjust_balance(basis, start, allowed[chain], unit)[1]
            allowed[chain] = tolerance
            before.append(basis)
        if place in groups:
            moves = [(basis, events[leg][2]) for basis, leg in zip(before, legs, strict=True)]
            left, came = map(iter, swap_tokens(
                [(basis, -size) for basis, size in moves if size < 0],
                [(basis, size) for basis, size in moves if size >= 0],
                unit,
            ))  # fmt: skip
            after = [next(left if size < 0 else came) for _, size in moves]
            expected[legs] = 0.0
        else:
            closed, basis = apply_spot_fill(before[0], change, price, fee, unit)
            is_known = closed is not None and not (change < 0 and before[0].unknown)
            expected[place] = (closed or 0) / unit / _CENT if is_known else np.nan
            after = [basis if change >= 0 else basis._replace(size=basis.size - fee)]
        for leg, basis in zip(legs, after, strict=True):
            held[events[leg][0]] = basis
            if basis.size and not basis.unknown:
                entry[leg] = basis.cost / basis.size / _CENT


def swap_groups(fills: Fills) -> dict[int, list[int]]:
    """Return the steps of each `Negate Outcome` by step: one account, time and transaction."""
    steps = fills.steps
    places = np.flatnonzero(fills.roles.swap[steps.rows] & steps.spot)
    if not len(places):
        return {}
    hashes = fills.table.text("hash", blank=True).codes[steps.rows]
    codes = number_rows(*(column[places] for column in (steps.user, steps.ms, hashes)))
    groups = [places[rows].tolist() for rows in split_groups(codes, int(codes.max()) + 1)]
    return {place: legs for legs in groups for place in legs}
