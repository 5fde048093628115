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
from typing import NamedTuple

import numpy as np

from toolkit.display import count_text
from toolkit.errors import UnnamedAccount, warn_caller
from toolkit.prepare.fills import Fills
from toolkit.prepare.money import warn_missing_tokens
from toolkit.prepare.owners import SEVERAL_ACCOUNTS, refuse_several_accounts
from toolkit.prepare.roles import warn_missing_directions
from toolkit.prepare.steps import POSITION_COLUMNS, Steps, check_positions


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


def check_chains(
    fills: Fills,
    needed: tuple[str, ...] = POSITION_COLUMNS,
    *,
    warns: bool = True,
    outcomes_alone: bool = True,
) -> None:
    """Raise or warn if fills do not state what the positions of one account need.

    - ``warns``: whether to warn of fees and directions that are missing
    - ``outcomes_alone``: as `warn_missing_directions` takes it
    """
    check_positions(fills.table, needed)
    if warns:
        warn_missing_tokens(fills.table)
        warn_missing_directions(fills.table, outcomes_alone=outcomes_alone)
    check_one_account(fills)


def check_one_account(fills: Fills) -> None:
    """Raise or warn if fills without a column user seem to be of several accounts.

    Raise ValueError if the fills prove that they are of several accounts.
    """
    refuse_several_accounts(fills.table.frame, "fills")
    named = fills.table.has("user") and not fills.table.is_blank("user")
    if named or fills.account is not None:
        return
    steps = fills.steps
    if trades := _count_two_sided_trades(fills):
        how = f"trade ids with a buy and a sell: {trades:,}"
        raise ValueError(SEVERAL_ACCOUNTS.format(what="fills", how=how))
    breaks = count_breaks(steps)
    if breaks.spot or (breaks.proved and breaks.resumed > breaks.begun):
        how = (
            "fills that return to a position at which an earlier chain of fills broke off: "
            f"{breaks.resumed + breaks.spot:,}"
        )
        raise ValueError(SEVERAL_ACCOUNTS.format(what="fills", how=how))
    count = breaks.resumed + breaks.begun + breaks.flat
    if count and len(fills.owners.names) != 1:
        warn_caller(
            f"fills: {count_text(count, 'fill does', 'fills do')} not start from the position that "
            "the previous fill left. Fills are missing, or the frame mixes several accounts. Name "
            "the account of each fill: fills.assign(user=address)",
            UnnamedAccount,
        )


def count_breaks(steps: Steps) -> BreakCounts:
    """Return how the positions of perps and the balances of spot tokens break."""
    resumed = proved = begun = flat = spot = moved = 0
    chain, ends, starts = -1, Counter[int](), Counter[int]()
    left: Counter[int] = Counter()
    for place in np.flatnonzero(steps.is_gap).tolist():
        if steps.chain[place] != chain:
            chain, left = int(steps.chain[place]), Counter()
            low, high = np.searchsorted(steps.chain, [chain, chain + 1])
            ends, starts = (Counter(units[low:high].tolist()) for units in (steps.end, steps.start))
        start = int(steps.start[place])
        left[int(steps.end[place - 1])] += 1
        if steps.spot[place]:  # tokens leave and enter a balance in other ways, too
            is_back = bool(start) and left[start] > 0
            left[start] -= is_back
            spot, moved = spot + is_back, moved + (start != 0 and not is_back)
        elif start and left[start] > 0:
            left[start] -= 1
            resumed += 1
            proved += ends[start] == starts[start] == 1
        else:
            begun, flat = begun + (start != 0), flat + (start == 0)
    is_spot_proved = spot >= _SPOT_RESUMED and spot > 2 * moved
    return BreakCounts(resumed, proved, begun, flat, spot if is_spot_proved else 0)


def _count_two_sided_trades(fills: Fills) -> int:
    """Return the number of trade ids that have a buy and a sell of one coin."""
    table = fills.table
    if not table.has("tid"):
        return 0
    tid = np.nan_to_num(table.number("tid")).astype(np.int64)
    is_buy = table.text("side").facts("B".__eq__)
    ordered = np.sort(tid)
    if not (ordered[1:] == ordered[:-1]).any():
        return 0
    coin = table.text("coin").codes
    order = np.lexsort((is_buy, coin, tid))
    tid, coin, is_buy = tid[order], coin[order], is_buy[order]
    same = (tid[1:] == tid[:-1]) & (coin[1:] == coin[:-1]) & (tid[1:] != 0)
    return int((same & (is_buy[1:] != is_buy[:-1])).sum())
