"""Reconciliation of two accounts between two times: a standard one and a unified one."""

import pandas as pd
import pytest

from toolkit.errors import MissingColumns
from toolkit.pnl import reconcile

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times
from .test_attribution_of_accounts import two_fills, two_ledgers, two_payments
from .test_round_trips import listed_rows

Pair = tuple[pd.DataFrame, pd.DataFrame]


def state(hour, worth, rows):
    values = pd.DataFrame({"user": [OTHER, ME], "account_value": worth, "account_mode": [2, 0]})
    values["time"] = times([MONDAY + int(hour * HOUR)] * 2)
    return values, pd.DataFrame(rows, columns=["user", "coin", "szi", "unrealized_pnl"])


START = state(1, [40.0, 111.5], [(ME, "flx:TSLA", -2.0, -3.0), (ME, "BTC", 0.0, 0.25)])
END = state(
    5,
    [300.0, 250.0],
    [(ME, "flx:TSLA", 3.0, 5.0), (OTHER, "ETH", 0.5, 0.75), (ME.upper(), "BTC", 5.0, -8.0)],
)


def made(kind, *, start=START, **more):
    frames = (two_fills(), two_payments(), two_ledgers())
    given = [as_numbers(frame, kind) for frame in frames]
    before = None if start is None else tuple(as_numbers(frame, kind) for frame in start)
    after = tuple(as_numbers(frame, kind) for frame in END)
    result: pd.DataFrame = reconcile(before, after, *given, **more)
    return result


MODES = [(ME, 0), (OTHER.lower(), 2)]
SINCE_START = [
    [111.5, 250, 138.5, 12, -1.0625, -0.1875, -0.5, 0, 8.75, -0.25, -3, 0, 122.75, 122.75, 0, 0, 0],
    [40, 300, 260, -8.75, 0, 0, 0, 0, 384.125, 0.75, -7, 0.25, -109.375, -109.375, 0, 0, 0],
]
SINCE_EVER = [
    [0, 250, 250, 17.5, -1.35625, -0.21875, -0.7, 0, 73.25, -3, 97, 0, 67.525, 67.525, 0, 0, 0],
    [0, 300, 300, -8.75, 0, 0, 0, 0, 384.125, 0.75, 23, 0.25, -99.375, -99.375, 0, 0, 0],
]
ODD = "without an amount in USD"
CAUSES_SINCE_START = [
    f"fills missing of BTC, funding (3 of 5 position hours), 1 fill, fee or flow {ODD}",
    f"fills missing of ETH, funding (1 of 2 position hours), 2 fills, fees or flows {ODD}",
]
CAUSES_SINCE_EVER = [
    f"fills missing of BTC, funding (5 of 7 position hours), 2 fills, fees or flows {ODD}",
    f"fills missing of ETH, funding (1 of 2 position hours), 2 fills, fees or flows {ODD}",
]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_changes_of_two_accounts_by_hand(kind):
    """Rows at the first time do not count, and those at the last time do.

    The state has 0.5 ETH, and the fills, which are all of whole ETH, end at 0.
    """
    for start, wanted, causes in (
        (START, SINCE_START, CAUSES_SINCE_START),
        (None, SINCE_EVER, CAUSES_SINCE_EVER),
    ):
        result = made(kind, start=start)
        assert result.pop("causes").tolist() == causes
        for row, mode, amounts in zip(listed_rows(result), MODES, wanted, strict=True):
            assert row == (*mode, *(round(v, 9) for v in amounts))
    names = ["start_value", "residual", "history_late", "spot_cash"]
    assert {str(result[name].dtype) for name in names} == {
        "float64" if kind == "float" else "decimal128(36, 18)[pyarrow]"
    }
    assert str(result["account_mode"].dtype) == "Int64"
    facts = result.attrs["toolkit"]
    assert facts["helper"] == "pnl.reconcile"
    assert list(facts["inputs"]) == ["end", "fills", "funding", "ledger"]


def test_absent_frames_leave_parts_missing():
    """Without positions or funding the parts are missing; a new account has no first value."""
    frames = (two_fills(), two_payments(), two_ledgers())
    bare = reconcile(START[0].head(1), END[0], *frames)
    assert bare["start_value"].isna().tolist() == [True, False]
    assert bare["closed_pnl"].tolist() == [0, -8.75]
    assert bare["unrealised"].isna().all()
    assert bare["residual"].isna().all()
    assert set(bare["causes"].str.split(", ").str[-1]) == {"unrealised not known"}
    unpaid = reconcile(START, END, frames[0], None, frames[2])
    assert unpaid["funding"].isna().all()
    assert unpaid["ledger"].tolist() == [-3, -7]


def test_tolerance_drops_small_parts():
    """At 6:00 the second account swaps outcome tokens, which bring no USDC."""
    frames = (two_fills(), two_payments(), two_ledgers())
    end = END[0].assign(time=times([MONDAY + 7 * HOUR] * 2)), END[1]
    assert reconcile(START, end, *frames)["spot_cash"].tolist() == [0, 0.25]
    near = made("float", tolerance=110)
    assert near[["history_late", "funding_missing"]].to_numpy().tolist() == [[122.75, 0], [0, 0]]


def test_errors_of_reconcile():
    fills, paid, moved = two_fills(), two_payments(), two_ledgers()
    with pytest.raises(MissingColumns, match="fills: the frame lacks the column coin"):
        reconcile(START, END, fills.drop(columns="coin"), paid, moved)
    with pytest.raises(MissingColumns, match="ledger: the frame lacks the column time"):
        reconcile(START, END, fills, paid, moved.drop(columns="time"))
    for name, column in (("fills", "user"), ("funding", "user"), ("ledger", "account")):
        given = {"fills": fills, "funding": paid, "ledger": moved}
        given[name] = given[name].drop(columns=column)
        with pytest.raises(ValueError, match=f"{name}: .* no column {column}, and .* of 2 acc"):
            reconcile(START, END, **given)
    exact = tuple(as_numbers(frame, "exact") for frame in START)
    with pytest.raises(MissingColumns, match="start and end have different kinds of numbers"):
        reconcile(exact, END, fills, paid, moved)
