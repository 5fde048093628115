"""Cases of ``tk.staking``."""

import numpy as np

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, table

NEEDED = {"history": "week net_apr gross_apr"}
NOW = MONDAY + 7 * DAY * 4


def history(n):
    """Return five weeks (the last one runs) of n / 5 validators with fees of 0, 10, ... 40 %."""
    k = np.arange(n)
    week, validator = k % 5, k // 5
    gross = 0.02 + 0.001 * week
    rows = table(
        n,
        validator=np.char.mod("0xv%07d", validator),
        week=times(MONDAY + 7 * DAY * week),
        net_apr=(gross * (1 - 0.1 * (validator % 5))).round(9),
        gross_apr=gross.round(9),
        total_delegator_rewards=1000.0,
    )
    return {"history": rows}


def case(helper, note="", **arguments):
    return Case(f"staking.{helper}", history, NEEDED, {"now": NOW} | arguments, note)


CASES = [
    case("apy"),
    case("implied_fee"),
    case("implied_fee", by="week", note="by week"),
    case("rank_stability"),
]
