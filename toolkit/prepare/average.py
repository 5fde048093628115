"""Average entry prices and expected closed PnL, step by step.

Perps (`toolkit.rules.closed_pnl`): only a fill that opens moves the average. It is then
``w * average + (1 - w) * px``, with ``w`` the size before the fill as a share of the size after it.
A closing fill takes the average, truncated to 6 - szDecimals decimals. Spot and outcome tokens
(`toolkit.rules.spot_cost`): the average cost of a balance, which is not truncated.
"""

from collections.abc import Callable, Mapping
from math import floor
from typing import Final, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.markets import is_perp
from toolkit.prepare.steps import Steps
from toolkit.rules.closed_pnl import price_decimals
from toolkit.rules.spot_cost import WEI, CostBasis, swap_tokens

_SNAP: Final = 1e-7
"""A float average this close below a whole tick is the whole tick."""

_CENT: Final = 10.0**WEI
"""Units of the exchange's spot money in one USD."""

PerpRule = Callable[[int, int, int, int, int], tuple[int, int, int]]
"""`toolkit.rules.closed_pnl.apply_perp_fill`, or the function of another rule."""


SizeDecimals = Mapping[str, int] | Frame
"""Coin -> size decimals, or a frame of `tk.meta`."""


def size_decimals(sz_decimals: SizeDecimals) -> dict[str, int]:
    """Return size decimals by coin, from a mapping or a frame of `tk.meta`."""
    if isinstance(sz_decimals, Mapping):
        return {str(coin): int(decimals) for coin, decimals in sz_decimals.items()}
    meta = Table(sz_decimals, "sz_decimals")
    meta.require(("name", "sz_decimals"))
    names, decimals = meta.text("name"), meta.number("sz_decimals")
    pairs = zip(names.codes.tolist(), decimals.tolist(), strict=True)
    # A coin with a missing value is left out: its size decimals are not known.
    return {names.values[code]: int(places) for code, places in pairs if places == places}


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


def average_prices(
    table: Table, steps: Steps, swaps: Flags, sz_decimals: Mapping[str, int]
) -> Average:
    """Return entry prices and closed PnL by the rules of the exchange.

    - ``swaps``: the rows of the table that swap outcome tokens without cash
    - ``sz_decimals``: size decimals of perps; prices of other perps are not known
    """
    px = table.number("px")[steps.rows]
    entry, expected = _perp_prices(steps, px, _decimals(steps, sz_decimals))
    gap = np.where(steps.same_start, 0, steps.gap)
    if steps.spot.any():
        _add_spot(table, steps, px, swaps, entry, expected, gap)
    return Average(entry, np.round(expected, WEI), steps.sizes(gap))


def expected_by_rule(
    table: Table, steps: Steps, sz_decimals: Mapping[str, int], rule: PerpRule
) -> Floats:
    """Return the closed PnL of perps by another rule, fill by fill."""
    decimals = _decimals(steps, sz_decimals)
    units = np.rint(table.number("px")[steps.rows] * _CENT).astype(np.int64).tolist()
    expected = np.full(len(steps), np.nan)
    known, entry = False, 0
    begins = (steps.first | steps.is_gap).tolist()
    walk = zip(
        begins, steps.start.tolist(), steps.change.tolist(), units, decimals.tolist(), strict=True
    )
    for step, (begin, start, change, px, places) in enumerate(walk):
        if begin:
            known, entry = start == 0, 0
        end = start + change
        if places != places:
            continue
        tick = int(10 ** (WEI - places))
        if known:
            gain, _, entry = rule(start, entry, change, px, tick)
            expected[step] = gain / _CENT / steps.scale[step]
        elif end == 0 or (end > 0) != (start > 0):
            known, (_, _, entry) = True, rule(0, 0, end, px, tick)
    return np.round(expected, WEI)


def _decimals(steps: Steps, sz_decimals: Mapping[str, int]) -> Floats:
    """Return the decimals of each step's entry price; NaN if the rule of perps does not apply."""
    by_coin = [
        price_decimals(sz_decimals[coin]) if coin in sz_decimals and is_perp(coin) else np.nan
        for coin in steps.coins
    ]
    return np.asarray(np.array(by_coin, dtype=np.float64)[steps.coin])


def _perp_prices(steps: Steps, px: Floats, decimals: Floats) -> tuple[Floats, Floats]:
    start, end = steps.start, steps.end
    before, after = np.abs(start), np.abs(end)
    opens = (start == 0) | ((start > 0) == (steps.change > 0))
    flips = ~opens & (end != 0) & ((end > 0) != (start > 0))
    late = (steps.first | steps.is_gap) & (start != 0)
    # The average after a fill is `old * average + new`.
    with np.errstate(divide="ignore", invalid="ignore"):
        old = np.where(opens & (start != 0) & ~late, before / after, 0.0)
        new = np.where(opens, px * np.abs(steps.change) / after, px)
    new[late & ~flips] = np.nan
    moves = opens | flips | late
    averages, average = [], np.nan
    for share, part in zip(old[moves].tolist(), new[moves].tolist(), strict=True):
        average = share * average + part if share else part
        averages.append(average)
    last = np.cumsum(moves) - 1
    if not averages:
        nothing = np.full(len(px), np.nan)
        return nothing, nothing.copy()
    now = np.array(averages)[last]
    then = np.append(np.nan, now[:-1])
    then[late] = np.nan
    ticks = np.power(10.0, decimals)
    now, then = (np.floor(each * ticks + _SNAP) / ticks for each in (now, then))
    gain = np.minimum(before, np.abs(steps.change)) / steps.scale * (px - then)
    expected = np.where(opens, np.where(np.isnan(now), np.nan, 0.0), np.sign(start) * gain)
    return np.where(end == 0, np.nan, now), expected


class _Balance:
    """The balance of a token in units of its chain, its cost in USD, and units of unknown cost."""

    __slots__ = ("cost", "size", "unknown")

    def __init__(self, size: int = 0, cost: float = 0.0, unknown: int = 0) -> None:
        self.size, self.cost, self.unknown = size, cost, unknown

    def arrive(self, start: int, tolerance: int) -> None:
        """Set the balance to the recorded one: tokens came or left without a fill."""
        gap = start - self.size
        if not start:
            self.size, self.cost, self.unknown = 0, 0.0, 0
        elif abs(gap) <= tolerance and self.size:
            self.size, self.unknown = start, min(self.unknown, start)
        elif gap >= 0:
            self.size, self.unknown = start, self.unknown + gap
        else:
            self.remove(-gap)

    def remove(self, size: int) -> float:
        """Remove tokens at average cost, and return their cost."""
        left = self.size - size
        cost = self.cost
        if left:
            cost = min(floor(cost * size / self.size * _CENT + 0.5) / _CENT, cost)
            self.unknown = self.unknown * left // self.size
            self.cost -= cost
        else:
            self.cost, self.unknown = 0.0, 0
        self.size = left
        return cost

    def sell(self, sold: int) -> float:
        """Remove sold tokens, and return their cost; NaN if it is not known."""
        known, cost = 0 if self.unknown else self.size, self.cost
        missing = max(0, sold - self.size)
        self.size, self.unknown = self.size + missing, self.unknown + missing
        taken = self.remove(sold)
        if not known:
            return np.nan
        return cost * sold / known if missing else taken


# ASSUMED: Base tokens of a rebate join the balance at no cost.
def _add_spot(
    table: Table,
    steps: Steps,
    px: Floats,
    swaps: Flags,
    entry: Floats,
    expected: Floats,
    gap: Ints,
) -> None:
    """Fill in entry price, closed PnL and gaps of spot and outcome tokens."""
    places = np.flatnonzero(steps.spot)
    groups = swap_groups(table, steps, swaps)
    if groups:  # a conversion connects chains, so all of them go on in the order of time
        places = places[np.argsort(steps.ms[places], kind="stable")]
    chains, starts, changes, fees, tolerances, scales, prices = (
        values[places].tolist()
        for values in (
            steps.chain,
            steps.start,
            steps.change,
            steps.fee,
            steps.tolerance,
            steps.scale,
            px,
        )
    )
    position = {place: number for number, place in enumerate(places.tolist())} if groups else {}
    held: dict[int, _Balance] = {}
    tolerance: dict[int, int] = {}
    entries = np.full(len(places), np.nan)
    gains = np.full(len(places), np.nan)
    gaps = np.zeros(len(places), dtype=np.int64)
    done: set[int] = set()

    def arrive(number: int) -> _Balance:
        chain, start = chains[number], starts[number]
        balance = held.get(chain)
        if balance is None:
            balance = held[chain] = _Balance(start, 0.0, start)
        else:
            missing = start - balance.size
            if abs(missing) > tolerance[chain]:
                gaps[number] = missing
            if missing:
                balance.arrive(start, tolerance[chain])
        tolerance[chain] = tolerances[number]
        return balance

    def leave(number: int, balance: _Balance) -> None:
        if balance.size and not balance.unknown:
            entries[number] = balance.cost / balance.size * scales[number]

    for number, place in enumerate(places.tolist()):
        if place in done:
            continue
        if place in groups:
            legs = [position[leg] for leg in groups[place]]
            done.update(groups[place])
            balances = [arrive(leg) for leg in legs]
            _swap(balances, [changes[leg] for leg in legs])
            for leg, balance in zip(legs, balances, strict=True):
                gains[leg] = 0.0
                leave(leg, balance)
            continue
        balance, change = arrive(number), changes[number]
        if change >= 0:
            gains[number] = 0.0
            balance.cost += change / scales[number] * prices[number]
        else:
            cost = balance.sell(-change)
            gains[number] = -change / scales[number] * prices[number] - cost
            change = 0
        balance.size += change - fees[number]
        leave(number, balance)
    entry[places], expected[places], gap[places] = entries, gains, gaps


def swap_groups(table: Table, steps: Steps, swaps: Flags) -> dict[int, list[int]]:
    """Return the steps of each `Negate Outcome` by step: one account, time and transaction.

    - ``swaps``: the rows of the table that swap outcome tokens
    """
    places = np.flatnonzero(swaps[steps.rows] & steps.spot).tolist()
    if not places:
        return {}
    together: dict[tuple[int, int, int], list[int]] = {}
    hashes = table.text("hash").codes[steps.rows] if table.has("hash") else np.zeros(len(steps))
    for place in places:
        key = (int(steps.user[place]), int(steps.ms[place]), int(hashes[place]))
        together.setdefault(key, []).append(place)
    return {place: legs for legs in together.values() for place in legs}


def _swap(balances: list[_Balance], changes: list[int]) -> None:
    """Move the cost of the tokens that leave to those that come in."""
    bases = [CostBasis(b.size, round(b.cost * _CENT), b.unknown) for b in balances]
    out = [n for n, change in enumerate(changes) if change < 0]
    into = [n for n, change in enumerate(changes) if change >= 0]
    left, came = swap_tokens(
        [(bases[n], -changes[n]) for n in out], [(bases[n], changes[n]) for n in into]
    )
    for n, basis in zip([*out, *into], [*left, *came], strict=True):
        balances[n].size, balances[n].unknown = basis.size, basis.unknown
        balances[n].cost = basis.cost / _CENT
