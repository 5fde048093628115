"""The closed PnL of perp fills as the exchange told it in 2023.

The rule has changed since. Fills recorded in May 2023 follow another one than
`toolkit.rules.closed_pnl`, found from those fills and exact on all of them whose entry price can
be known:

- the average entry price is weighted by unsigned size at **every** fill that does not flip or
  flatten, closing ones too, so that each partial close draws it towards its own price, and is
  truncated to (6 - szDecimals) decimals each time;
- closing c realises c * (px - entry) * sign, with the entry price before the fill;
- a flip opens the rest at px, and realises the closed size times (px - entry) **without** the
  sign: what a short gains by it counts as a loss.

Everything is a Python int, in the units of `toolkit.rules.closed_pnl`.

>>> size, entry = 0, 0
>>> for change, px in ((-10, 100), (5, 91), (10, 95)):
...     closed, size, entry = step(size, entry, change, px)
...     print(closed, size, entry)
0 -10 100
45 -5 97
-10 5 95
"""

__all__ = ["step"]


def step(size: int, entry: int, change: int, px: int, tick: int = 1) -> tuple[int, int, int]:
    """Apply one fill to a position.

    Parameters
    ----------
    size : int
        Signed size before the fill, in size units; long is positive.
    entry : int
        Truncated average entry price before the fill, in price units; 0 when flat.
    change : int
        Signed size of the fill: positive for a buy (side ``B``), negative for a sell (``A``).
    px : int
        Price of the fill, in price units, positive.
    tick : int, default 1
        Price units to one step of the truncated entry price.

    Returns
    -------
    closed_pnl : int
        In price units times size units.
    size, entry : int
        The position after the fill, to pass to the next step.
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
