"""The closed PnL of perp fills, by the exchange's own rule, in whole numbers.

The rule, from a flat start (nearly all recorded fills agree with it; docs/accounting.md, "The check
against the exchange", shows how to check fills):

- the account has a signed size, and an exact entry notional N of its absolute value q;
- opening adds px * sz to N and closes nothing;
- closing c takes the entry price N / q, **truncated** to (6 - szDecimals) decimals, realises
  c * (px - entry) * sign, and shrinks N by the exact share c / q;
- a flip closes all and opens the rest at px.

Units
-----
Everything is a Python int. Sizes are in lots of 10**-szDecimals, prices in ticks of
10**-(6 - szDecimals). A notional and a closed PnL are therefore whole millionths of a USD:
``lots * ticks``. If data have finer prices or sizes, scale both finer and pass as `tick` the
number of price units in one step of the truncated entry price.

Why N is not a `Fraction`
-------------------------
N becomes rational with the first partial close. Over a position chain that never goes flat its
denominator grows by a factor at every close: 10,000 fills would need numbers of 100,000 bits. N is
therefore in units of 2**-GUARD_BITS, rounded *up*. The truncated entry price that follows is the
exact one if the exact N / q is a whole tick (rounding up cannot fall below it), or if it has a
denominator below 2**GUARD_BITS over the number of closes. For any other it differs only if N / q
lies within 10**-70 ticks below a whole tick.

>>> size, entry, total = 0, 0, 0
>>> for change, px in ((10, 100), (5, 101), (-9, 110), (-8, 90)):
...     closed, size, entry = apply_perp_fill(size, entry, change, px)
...     total += closed
...     print(closed, size, entry_price(size, entry))
0 10 100
0 15 100
90 6 100
-60 -2 90

The rule of 2023
----------------
Fills recorded in May 2023 follow another rule. It was found from those fills and is exact on all
of them with a known entry price:

- the average entry price is weighted by unsigned size at **every** fill that does not flip or
  flatten, also at closing fills. Each partial close therefore moves it towards its own price. It
  is truncated to (6 - szDecimals) decimals each time;
- closing c realises c * (px - entry) * sign, with the entry price before the fill;
- a flip opens the rest at px, and realises the closed size times (px - entry) **without** the
  sign: a gain of a short counts as a loss.

>>> size, entry = 0, 0
>>> for change, px in ((-10, 100), (5, 91), (10, 95)):
...     closed, size, entry = apply_perp_fill_2023(size, entry, change, px)
...     print(closed, size, entry)
0 -10 100
45 -5 97
-10 5 95
"""

GUARD_BITS = 256
"""The entry notional is in units of 2**-GUARD_BITS of a price unit times a size unit."""

PRICE_DECIMALS = 6
"""A perp price has at most 6 - szDecimals decimals (specification: `meta`, szDecimals)."""


def apply_perp_fill(
    size: int, entry: int, change: int, px: int, tick: int = 1
) -> tuple[int, int, int]:
    """Apply one fill to a position.

    Parameters
    ----------
    size : int
        Signed size before the fill, in size units; long is positive.
    entry : int
        Entry notional before the fill, as this function returns it; 0 when flat.
    change : int
        Signed size of the fill: positive for a buy (side ``B``), negative for a sell (``A``).
    px : int
        Price of the fill, in price units, positive.
    tick : int, default 1
        Price units in one step of the truncated entry price.

    Returns
    -------
    closed_pnl : int
        In price units times size units; positive is a gain; exactly 0 for an opening fill.
    size, entry : int
        The position after the fill, for the next call.
    """
    after = size + change
    if size == 0 or (size > 0) == (change > 0):
        return 0, after, entry + ((abs(change) * px) << GUARD_BITS)
    before = abs(size)
    gain = px - entry_price(size, entry, tick)
    if size < 0:
        gain = -gain
    if (after > 0) != (size > 0):  # all of it closed, the rest (if any) opened at px
        return before * gain, after, (abs(after) * px) << GUARD_BITS
    # Floor division of negated numbers rounds up.
    return abs(change) * gain, after, -(-entry * abs(after) // before)


def apply_perp_fill_2023(
    size: int, entry: int, change: int, px: int, tick: int = 1
) -> tuple[int, int, int]:
    """Apply one fill to a position by the rule of 2023.

    Parameters
    ----------
    size, change, px, tick : int
        As in `apply_perp_fill`.
    entry : int
        Truncated average entry price before the fill, in price units; 0 when flat.

    Returns
    -------
    closed_pnl : int
        In price units times size units.
    size, entry : int
        The position after the fill, for the next call.
    """
    after = size + change
    if size == 0:
        return 0, after, px
    mean = (entry * abs(size) + px * abs(change)) // ((abs(size) + abs(change)) * tick) * tick
    if (size > 0) == (change > 0):
        return 0, after, mean
    if after and (after > 0) != (size > 0):
        return abs(size) * (px - entry), after, px
    gain = px - entry if size > 0 else entry - px
    return abs(change) * gain, after, mean if after else 0


def entry_price(size: int, entry: int, tick: int = 1) -> int:
    """Return the entry price that the exchange uses: N / q, truncated to whole ticks.

    Parameters
    ----------
    size, entry : int
        A position as `apply_perp_fill` returns it.
    tick : int, default 1
        Price units in one step of the truncated price.

    Returns
    -------
    int
        In price units; 0 for a flat position.
    """
    if size == 0:
        return 0
    return entry // ((abs(size) * tick) << GUARD_BITS) * tick


def price_decimals(sz_decimals: int) -> int:
    """Return the decimals of a perp's prices, and of its truncated entry price.

    Parameters
    ----------
    sz_decimals : int
        The asset's ``szDecimals`` of `meta`.

    Returns
    -------
    int
        6 - szDecimals, at least 0.

    Examples
    --------
    >>> price_decimals(5)
    1
    """
    return max(0, PRICE_DECIMALS - sz_decimals)
