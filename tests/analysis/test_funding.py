"""Sums of funding: examples by hand, identities, simulated and recorded rows."""

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given

from toolkit.errors import MissingColumns
from toolkit.funding import accrual, sums

from .examples import DAY, HOUR, ME, MONDAY, OTHER, funding, times

MONEY = ["paid", "received", "net"]


def _payments(*rows):
    coins, hours, usdc = zip(*rows, strict=True)
    at = times(MONDAY + hour * HOUR for hour in hours)
    return pd.DataFrame({"coin": coins, "time": at, "usdc": usdc, "user": ME})


UNORDERED = _payments(
    ("ETH", 30, 7.0), ("BTC", 5, -3.0), ("BTC", 2, 0.5), ("BTC", 5, 1.25), ("BTC", 170, -8.0)
)


def test_sums_by_hand():
    before = UNORDERED.copy(deep=True)
    result = sums(UNORDERED)
    pd.testing.assert_frame_equal(UNORDERED, before)
    pd.testing.assert_frame_equal(sums(UNORDERED.sample(frac=1, random_state=2)), result)
    assert result["coin"].tolist() == ["BTC", "ETH"]
    assert result[MONEY].to_numpy().tolist() == [[-11.0, 1.75, -9.25], [0.0, 7.0, 7.0]]
    assert result["payments"].tolist() == [4, 1]
    assert list(result["first"]) == list(times([MONDAY + 2 * HOUR, MONDAY + 30 * HOUR]))
    assert list(result["last"]) == list(times([MONDAY + 170 * HOUR, MONDAY + 30 * HOUR]))
    assert list(result.dtypes.astype(str)) == [
        *("str", "float64", "float64", "float64", "int64"),
        *("datetime64[ms, UTC]", "datetime64[ms, UTC]"),
    ]
    groups = {
        "dex": [("flx", -0.25), ("hyperliquid", -0.5)],
        "week": [(times([MONDAY])[0], -0.75)],
        "day": [(times([MONDAY])[0], -1.0), (times([MONDAY + DAY])[0], 0.25)],
    }
    for by, wanted in groups.items():
        found = sums(funding(), by)
        assert list(zip(found[by], found["net"], strict=True)) == wanted


def test_sum_of_no_rows_is_zero():
    nothing = sums(funding().iloc[:0], None).iloc[0]
    assert (nothing["net"], nothing["payments"]) == (0, 0)
    assert pd.isna(nothing["first"])


def test_wrong_payments_are_named():
    with pytest.raises(MissingColumns, match=r"^funding: "):
        accrual(funding().assign(usdc=float("inf")))
    with pytest.raises(ValueError, match="hour, day, week"):
        accrual(funding(), step="month")
    for helper, names in (
        (sums, ["time", *MONEY, "payments", "first", "last"]),
        (accrual, ["time", "usdc", "payments", "total"]),
    ):
        for name in names:
            with pytest.raises(ValueError, match=f"'{name}'"):
                helper(funding(), name)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["BTC", "ETH"]), st.integers(0, 40), st.integers(-(10**9), 10**9)
        ),
        min_size=1,
        max_size=20,
        unique=True,
    )
)
def test_groups_and_curves_add_up_to_total(rows):
    """Amounts are 64ths of a USD, whose sums are exact."""
    frame = _payments(*((coin, hour, amount / 64) for coin, hour, amount in rows))
    by_coin, total = sums(frame), sums(frame, None).iloc[0]
    assert total["net"] == sum(amount for *_, amount in rows) / 64 == sum(by_coin["net"])
    assert total["net"] == total["paid"] + total["received"]
    assert total["paid"] <= 0 <= total["received"]
    assert by_coin["payments"].sum() == len(rows)
    curves = accrual(frame)
    assert curves.groupby("coin")["total"].last().tolist() == by_coin["net"].tolist()
    assert curves["payments"].sum() == len(rows)
    assert curves["total"].equals(curves.groupby("coin")["usdc"].cumsum())


def test_sums_of_simulated_accounts(world, tables):
    found = sums(tables.funding, "user").set_index("user")["net"]
    wanted = {u: float(truth.funding) for u, truth in world.expected.items() if truth.funding}
    assert {user: found[user] for user in wanted} == pytest.approx(wanted, abs=1e-6)


def test_sums_of_recorded_rows(recorded):
    answer = recorded("userFunding")
    amounts = [float(row["delta"]["usdc"]) for row in answer]
    frame = pd.DataFrame({"user": ME, "usdc": amounts, "time": times(r["time"] for r in answer)})
    total = sums(frame.assign(coin=[row["delta"]["coin"] for row in answer]), None).iloc[0]
    assert total["payments"] == 218
    assert total["net"] == pytest.approx(sum(amounts))


def test_rows_without_amount_are_no_payments():
    """Missing amounts are no payments, the unknown coin comes last, and no row sums to 0."""
    nan = float("nan")
    rows = _payments(
        (None, 9, -3.0), ("ETH", 1, 0.5), ("BTC", 2, 0.125), ("BTC", 3, nan), (None, 4, 1.25),
        ("BTC", 5, 0.25), ("BTC", 6, -0.75),
    ).astype({"coin": "str"})  # fmt: skip
    result = sums(rows)
    assert result["coin"].fillna("").tolist() == ["BTC", "ETH", ""]
    assert result[MONEY].to_numpy().tolist() == [
        [-0.75, 0.375, -0.375], [0, 0.5, 0.5], [-3, 1.25, -1.75]
    ]  # fmt: skip
    assert result["payments"].tolist() == [3, 1, 2]
    whole = sums(rows, None).iloc[0]
    assert [whole["first"], whole["last"]] == list(times([MONDAY + HOUR, MONDAY + 9 * HOUR]))
    assert sums(rows.iloc[[3]], None)[[*MONEY, "payments"]].to_numpy().tolist() == [[0] * 4]


def test_accrual_separates_accounts_and_coins():
    """Neither order of rows nor the same hour of another account changes a curve."""
    rows = pd.concat([UNORDERED, UNORDERED.assign(user=OTHER, usdc=UNORDERED["usdc"] * 10)])
    result = accrual(rows, ["user", "coin"], step="day")
    assert list(result.columns) == ["user", "coin", "time", "usdc", "payments", "total"]
    assert result["total"].tolist() == [-1.25, -9.25, 7.0, -12.5, -92.5, 70.0]
    assert result["payments"].tolist() == [3, 1, 1, 3, 1, 1]
    assert result["usdc"].tolist() == [-1.25, -8.0, 7.0, -12.5, -80.0, 70.0]
    assert accrual(rows, "coin")["payments"].dtype == "int64"
    whole = accrual(rows, None, step="week")
    assert list(whole.columns) == ["time", "usdc", "payments", "total"]
    assert whole["total"].tolist() == [11 * 5.75, 11 * -2.25]
