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


def case(helper, at_scale, by=None, **more):
    arguments = {"now": NOW} | ({} if by is None else {"by": by})
    return Case(f"staking.{helper}", history, at_scale, NEEDED, arguments, **more)


def weeks_at_scale(frames, result):
    n = len(frames["history"])
    assert result["whole"].sum() == n // 5 * 4
    assert np.isclose(result["fee"].mean(), 0.2)


def apy_at_scale(frames, result):
    """Every fifth validator has no fee: APRs of 2.0 to 2.3 %."""
    assert (result["n"] == 4).all()
    assert (result["partial"] == 1).all()
    free = result.iloc[::5]
    wanted = np.prod([1 + a * 7 / 365 for a in (0.02, 0.021, 0.022, 0.023)]) ** (365 / 28) - 1
    assert np.allclose(free["apy"], wanted)
    assert np.allclose(free["apr"], 0.0215)


def fee_at_scale(frames, result):
    wanted = 0.1 * (np.arange(len(result)) % 5)
    for name in ("fee", "low", "high", "behind_best"):
        assert np.allclose(result[name], wanted, atol=1e-6)


def ranks_at_scale(frames, result):
    """The same order every week, with ties within it."""
    assert np.allclose(result["estimate"], 1.0)


CASES = [
    case("apy", apy_at_scale),
    case("implied_fee", fee_at_scale),
    case("implied_fee", weeks_at_scale, by="week", note="by week"),
    case("rank_stability", ranks_at_scale),
]
