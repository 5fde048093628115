"""The cost basis and the closed PnL of spot and outcome tokens, in whole numbers.

Source: docs/live_service.md, section 3 (spot, measured) and section 7 (outcome conversions).

The rule, for one account and one token:

- the account has q tokens with a total cost N;
- a buy adds px * sz to N, and sz - fee to q, where the fee is paid in the bought token. A fee in
  another token leaves q at sz, and is no part of N;
- a sell of c tokens closes c * (px - N / q) and takes the share c / q out of N. The sell's own
  fee is not deducted;
- tokens also enter and leave without a trade (transfers, staking, priority gas). Then the next
  fill starts from another balance than the last one left. `adjust_balance` covers this gap.

From a flat balance to a flat balance without a gap, the closed PnL is exactly the cash:
sum(-side * px * sz) = sum(closed_pnl). The token fee of a buy is inside the cost.

Units
-----
Everything is a Python int: sizes in units of the finest size, prices in units of the finest
price, costs and closed PnL in price units times size units. Exact decimals and floats are scaled
first. The cost that leaves with a sell is rounded to a multiple of `unit`, and N keeps the rest.
So nothing is lost, and every sum is exact. `unit` is the money unit of the exchange, 1e-8 USD, as
soon as the numbers are finer than that.

Tokens of unknown cost
----------------------
The fills do not contain the cost of tokens that come in through a gap. `unknown` counts these
tokens. A sell takes tokens of known and of unknown cost in proportion, and prices both at the
average cost of those that were bought, N / (q - unknown). Without unknown tokens this is N / q.
If nothing was bought, the closed PnL is None. A caller that must not guess treats a sell with
`unknown` > 0 before it as unknown.

Conversions of outcome tokens
-----------------------------
`Split Outcome` buys both legs of an outcome at the conventional price, `Merge Outcome` and `Merge
Question` sell legs at it, `Settlement` sells at what the outcome pays: `apply_spot_fill` applies
to each of these fills. The prices of the legs add up to 1, so their cash is right. `Negate
Outcome` swaps tokens without any cash, so its prices mean nothing: `swap_tokens` moves the cost
of the leg that leaves to the legs that come in. The fills of one conversion have the same time
and hash.

>>> basis = FLAT
>>> closed, basis = apply_spot_fill(basis, 10_000, 10, fee=7)  # pay 0.07 of the token
>>> basis
CostBasis(size=9993, cost=100000, unknown=0)
>>> apply_spot_fill(basis, -9_993, 11)
(9923, CostBasis(size=0, cost=0, unknown=0))
"""

from collections.abc import Sequence
from typing import NamedTuple

WEI = 8
"""The most decimals of spot balances and spot money: one unit is 1e-8 of a token, or of a USD."""

SWAPS = ("Negate Outcome",)
"""The `dir` words of conversions without cash, for `swap_tokens`."""


class CostBasis(NamedTuple):
    """An account's balance of a token, and its cost.

    Parameters
    ----------
    size : int
        The balance q, in size units; never negative.
    cost : int
        The cost N of the tokens of known cost, in price units times size units.
    unknown : int
        Tokens of unknown cost; at most `size`.
    """

    size: int
    cost: int
    unknown: int

    @property
    def is_known(self) -> bool:
        """Whether the cost of every token is known."""
        return not self.unknown


FLAT = CostBasis(0, 0, 0)
"""An empty balance."""


def apply_spot_fill(
    basis: CostBasis, change: int, px: int, fee: int = 0, unit: int = 1
) -> tuple[int | None, CostBasis]:
    """Apply one fill to a balance.

    Parameters
    ----------
    basis : CostBasis
        The balance before the fill.
    change : int
        Signed size of the fill: positive for a buy (side ``B``), negative for a sell (``A``).
        A sell of more than the balance first adds the missing tokens, at unknown cost.
    px : int
        Price of the fill, in price units.
    fee : int, default 0
        The fee of a buy, if it is paid in the bought token, in size units.
    unit : int, default 1
        The cost that leaves with a sell is rounded to a multiple of this, half up.

    Returns
    -------
    closed_pnl : int or None
        In price units times size units; positive is a gain. 0 for a buy; None for a sell of
        tokens that were never bought.
    basis : CostBasis
        The balance after the fill.

    Examples
    --------
    Three bought at 10 and 13, one sold at 12: it cost (20 + 13) / 3 = 11.

    >>> apply_spot_fill(CostBasis(3, 33, 0), -1, 12)
    (1, CostBasis(size=2, cost=22, unknown=0))

    One of four tokens came in at unknown cost; all four count at the average of the others:

    >>> apply_spot_fill(CostBasis(4, 33, 1), -4, 12)
    (4, CostBasis(size=0, cost=0, unknown=0))
    """
    if change >= 0:
        return 0, CostBasis(basis.size + change - fee, basis.cost + change * px, basis.unknown)
    sold = -change
    if sold > basis.size:
        _, basis = adjust_balance(basis, sold, tolerance=0)
    cost, left = _remove_tokens(basis, sold, unit)
    known = basis.size - basis.unknown
    if not known:
        return None, left
    if basis.unknown:
        # ASSUMED: The cost of a token that came in without a trade is not known. It counts as the
        # average cost of the bought tokens.
        cost = _cost_share(basis.cost, sold, known, unit)
    return sold * px - cost, left


def adjust_balance(
    basis: CostBasis, size: int, tolerance: int = 1, unit: int = 1
) -> tuple[int, CostBasis]:
    """Make a balance equal the recorded size: remove or add tokens that moved without a trade.

    Parameters
    ----------
    basis : CostBasis
        The balance after the fills so far.
    size : int
        The recorded balance (`startPosition` of the next fill), in size units.
    tolerance : int, default 1
        A gap up to this is rounding: the balance is corrected and the cost stays. Use one unit
        of the recorded precision.
    unit : int, default 1
        As in `apply_spot_fill`.

    Returns
    -------
    disposed : int
        The cost of the tokens that left without proceeds, at the average price; 0 if tokens came
        in.
    basis : CostBasis
        With the recorded size. Tokens that came in are of unknown cost.

    Examples
    --------
    >>> adjust_balance(CostBasis(100, 500, 0), 80)
    (100, CostBasis(size=80, cost=400, unknown=0))
    >>> adjust_balance(CostBasis(100, 500, 0), 130)
    (0, CostBasis(size=130, cost=500, unknown=30))
    >>> adjust_balance(CostBasis(100, 500, 0), 99)
    (0, CostBasis(size=99, cost=500, unknown=0))
    """
    gap = size - basis.size
    if not size:
        return basis.cost, FLAT
    if abs(gap) <= tolerance and basis.size:
        return 0, CostBasis(size, basis.cost, min(basis.unknown, size))
    if gap >= 0:
        return 0, CostBasis(size, basis.cost, basis.unknown + gap)
    return _remove_tokens(basis, -gap, unit)


def swap_tokens(
    sources: Sequence[tuple[CostBasis, int]],
    targets: Sequence[tuple[CostBasis, int]],
    unit: int = 1,
) -> tuple[list[CostBasis], list[CostBasis]]:
    """Swap tokens for others without cash, as `Negate Outcome` does; the cost moves along.

    Parameters
    ----------
    sources : sequence of (CostBasis, int)
        The balance of each token that leaves, and the size that leaves.
    targets : sequence of (CostBasis, int)
        The balance of each token that comes in, and the size that comes in.
    unit : int, default 1
        As in `apply_spot_fill`.

    Returns
    -------
    sources, targets : list of CostBasis
        The balances after the swap, in the same order. The tokens that came in share the cost of
        those that left, in proportion to their sizes. If tokens of unknown cost left, the same
        share of the tokens that came in is of unknown cost.

    Examples
    --------
    >>> targets = [(FLAT, 10), (CostBasis(5, 2, 0), 10), (FLAT, 10)]
    >>> swap_tokens([(CostBasis(20, 60, 0), 10)], targets)[1]
    [CostBasis(size=10, cost=10, unknown=0), CostBasis(size=15, cost=12, unknown=0), \
CostBasis(size=10, cost=10, unknown=0)]
    """
    # ASSUMED: A swap of outcome tokens has no closed PnL. The received tokens get the cost of the
    # tokens that they replace, in proportion to their sizes.
    left, moved, gone, gone_unknown = [], 0, 0, 0
    for basis, size in sources:
        if size > basis.size:
            _, basis = adjust_balance(basis, size, tolerance=0)
        cost, rest = _remove_tokens(basis, size, unit)
        left.append(rest)
        moved += cost
        gone += size
        gone_unknown += basis.unknown - rest.unknown
    came, coming = [], sum(size for _, size in targets)
    for basis, size in targets:
        cost = _cost_share(moved, size, coming, unit) if coming != size else moved
        moved, coming = moved - cost, coming - size
        unknown = size * gone_unknown // gone if gone else size
        came.append(CostBasis(basis.size + size, basis.cost + cost, basis.unknown + unknown))
    return left, came


def _remove_tokens(basis: CostBasis, size: int, unit: int) -> tuple[int, CostBasis]:
    """Remove tokens at average cost; return their cost and the remaining balance."""
    left = basis.size - size
    if not left:
        return basis.cost, FLAT
    cost = min(_cost_share(basis.cost, size, basis.size, unit), basis.cost)
    # Rounded down, so that some of the remaining tokens stay of known cost.
    unknown = basis.unknown * left // basis.size
    return cost, CostBasis(left, basis.cost - cost, unknown)


def _cost_share(amount: int, part: int, total: int, unit: int) -> int:
    """Return `amount` * `part` / `total`, rounded half up to a multiple of `unit`."""
    # ASSUMED: The exchange rounds the cost of the sold tokens to 1e-8 USD, half up.
    return (2 * amount * part + total * unit) // (2 * total * unit) * unit
