"""Wire rows of spot and outcome coins in integers, and the rule of section 3 for them."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from toolkit.contract.records import Fill
from toolkit.rules import spot_cost

TOKEN = 10**8
"""Units of a size; a balance has at most eight decimals."""

PRICE = 10**8
"""Units of a price."""

MONEY = 10**8
"""Units of cost and closed PnL (1e-16 USD) in 1e-8 USD, the unit of the exchange."""


@dataclass
class Row:
    """One fill with the results of the rule."""

    fill: Fill
    start: int
    change: int
    px: int
    fee: int
    gap: int = 0
    disposed: int = 0
    closed: int | None = 0
    before: spot_cost.CostBasis = spot_cost.FLAT
    after: spot_cost.CostBasis = spot_cost.FLAT

    @property
    def cash(self):
        """The cash of the fill in 1e-16 USD, without fees; 0 for swaps."""
        return 0 if self.fill.dir in spot_cost.SWAPS else -self.change * self.px

    @property
    def stated(self):
        """The closed PnL of the row, in 1e-16 USD."""
        return scaled(self.fill.closed_pnl, TOKEN * PRICE)


def scaled(number, units):
    """Return decimal text as an integer number of units; it must be exact."""
    exact = Decimal(number) * units
    assert exact == int(exact)
    return int(exact)


def read(fill):
    """Return a fill in integers."""
    bought = fill.side == "B" and fill.fee_token not in ("USDC", "USDH")
    return Row(
        fill,
        scaled(fill.start_position, TOKEN),
        scaled(fill.sz, TOKEN) * (1 if fill.side == "B" else -1),
        scaled(fill.px, PRICE),
        scaled(fill.fee, TOKEN) if bought else 0,
    )


def chains(fills):
    """Return the rows of each account and spot or outcome coin, with the results of the rule."""
    kept: dict[tuple[str, str], list[Row]] = defaultdict(list)
    held: dict[tuple[str, str], spot_cost.CostBasis] = defaultdict(lambda: spot_cost.FLAT)
    swaps: list[tuple[str, Row]] = []
    for user, fill in fills:
        if not set(fill.coin) & set("/@#"):
            continue
        row = read(fill)
        if swaps and (fill.dir not in spot_cost.SWAPS or fill.hash != swaps[0][1].fill.hash):
            swap(swaps, held)
            swaps = []
        key = user, fill.coin
        row.gap = row.start - held[key].size
        row.disposed, row.before = spot_cost.adjust_balance(held[key], row.start, 0, MONEY)
        kept[key].append(row)
        if fill.dir in spot_cost.SWAPS:
            swaps.append((user, row))
            held[key] = row.before
            continue
        row.closed, row.after = spot_cost.apply_spot_fill(
            row.before, row.change, row.px, row.fee, MONEY
        )
        held[key] = row.after
    swap(swaps, held)
    return kept


def swap(legs, held):
    """Move the cost of the legs that leave to the legs that come in."""
    out = [(user, row) for user, row in legs if row.change < 0]
    into = [(user, row) for user, row in legs if row.change > 0]
    left, came = spot_cost.swap_tokens(
        [(row.before, -row.change) for _, row in out],
        [(row.before, row.change) for _, row in into],
        MONEY,
    )
    for (user, row), after in zip(out + into, left + came, strict=True):
        row.after = held[user, row.fill.coin] = after
