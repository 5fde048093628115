"""Whether fills without a column user are of one account, by what the fills themselves show.

A helper that walks the history of one account would take the fills of two accounts for one chain of
positions. Three observations tell them apart:

- A trade has two sides, and the exchange cancels an order that would meet one of the same account.
  So one trade id on both sides proves two accounts.
- If fills of one account are missing, its positions break and continue from a new position. If the
  fills of two accounts are mixed, they continue from positions where they stopped before. A break
  that does so proves two accounts, if the account has not been at this position at another time,
  and if fewer breaks continue from a new position.
- Any other break means that fills are missing, or that they are of several accounts. The results
  show it as `chain_break` or ``broken``. A warning says so if neither the frame nor its provenance
  names the account.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from toolkit.analysis.common.row_owners import SEVERAL_ACCOUNTS, account_names
from toolkit.analysis.pnl.execution_sequence import IntegerFills
from toolkit.display import count_text
from toolkit.errors import UnnamedAccount, warn_caller


class BreakCounts(NamedTuple):
    """How often a fill does not start from the position after the fill before it.

    - ``resumed``: fills that continue from the end of an earlier break
    - ``proved``: those of them whose position the chain has at no other time
    - ``begun``: fills that continue from a new position
    - ``flat``: fills of perps that begin flat, although the position before is open
    - ``spot``: fills of spot tokens that continue from an earlier balance, if they are many
    """

    resumed: int
    proved: int
    begun: int
    flat: int
    spot: int


_SPOT_RESUMED = 3  # tokens also come back to a balance by transfers


def check_one_account(
    native: Any,
    frame: nw.DataFrame[Any],
    integers: IntegerFills,
    order: Sequence[int],
    account: str | None = None,
) -> None:
    """Raise or warn if fills without a column user seem to be of several accounts.

    - ``native``: the fills as the caller passed them, with their provenance
    - ``frame``, ``integers``: the same fills
    - ``order``: the rows in the order of execution, chain by chain
    - ``account``: the account, if the caller named it

    Raise ValueError if the fills prove that they are of several accounts.
    """
    if "user" in frame.columns or account is not None:
        return
    if trades := _count_two_sided_trades(frame, integers):
        how = f"trade ids with a buy and a sell: {trades:,}"
        raise ValueError(SEVERAL_ACCOUNTS.format(what="fills", how=how))
    breaks = count_breaks(integers, order)
    if breaks.spot or (breaks.proved and breaks.resumed > breaks.begun):
        how = (
            "fills that return to a position at which an earlier chain of fills broke off: "
            f"{breaks.resumed + breaks.spot:,}"
        )
        raise ValueError(SEVERAL_ACCOUNTS.format(what="fills", how=how))
    count = breaks.resumed + breaks.begun + breaks.flat
    if count and len(account_names(native)) != 1:
        warn_caller(
            f"fills: {count_text(count, 'fill does', 'fills do')} not start from the position that "
            "the previous fill left. Fills are missing, or the frame mixes several accounts. Name "
            "the account of each fill: fills.assign(user=address)",
            UnnamedAccount,
        )


def count_breaks(integers: IntegerFills, order: Sequence[int]) -> BreakCounts:
    """Return how the positions of perps and the balances of spot tokens break."""
    chains = integers.chain.tolist()
    ends = Counter((chains[row], integers.end[row]) for row in order)
    starts = Counter((chains[row], integers.start[row]) for row in order)
    resumed = proved = begun = flat = spot = moved = 0
    last, position = -1, 0
    left: Counter[int] = Counter()
    for row in order:
        start = integers.start[row]
        if chains[row] != last:
            last, left = chains[row], Counter()
        elif start != position:
            left[position] += 1
            if integers.spot[row]:  # tokens leave and enter a balance in other ways, too
                is_back = bool(start) and left[start] > 0
                left[start] -= is_back
                spot, moved = spot + is_back, moved + (start != 0 and not is_back)
            elif start and left[start] > 0:
                left[start] -= 1
                resumed += 1
                proved += ends[last, start] == starts[last, start] == 1
            else:
                begun, flat = begun + (start != 0), flat + (start == 0)
        position = integers.end[row]
    is_spot_proved = spot >= _SPOT_RESUMED and spot > 2 * moved
    return BreakCounts(resumed, proved, begun, flat, spot if is_spot_proved else 0)


def _count_two_sided_trades(frame: nw.DataFrame[Any], integers: IntegerFills) -> int:
    """Return the number of trade ids that have a buy and a sell of one coin."""
    if "tid" not in frame.columns:
        return 0
    tid = frame["tid"].fill_null(0).cast(nw.Int64()).to_numpy()
    is_buy = np.array([change > 0 for change in integers.change], dtype=bool)
    order = np.lexsort((is_buy, integers.chain, tid))
    tid, chain, is_buy = tid[order], integers.chain[order], is_buy[order]
    same = (tid[1:] == tid[:-1]) & (chain[1:] == chain[:-1]) & (tid[1:] != 0)
    return int((same & (is_buy[1:] != is_buy[:-1])).sum())
