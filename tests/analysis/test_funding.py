"""Sums of funding: examples by hand, identities, every engine, simulated and recorded rows."""

from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from tests.engines import Engine
from toolkit.errors import MissingColumns
from toolkit.funding import accrual, sums

from .examples import DAY, EXACT, HOUR, ME, MONDAY, OTHER, as_numbers, funding, times

KINDS = ("float", "exact")
GROUPS = (None, "coin", ["coin", "day"], "dex", ["user", "hour"], "week")


@pytest.mark.parametrize("kind", KINDS)
def test_sums_by_hand(kind):
    rows = pd.concat([funding(), funding().assign(usdc=[0.5, 0.0, -0.26])])
    result = sums(as_numbers(rows, kind))
    assert list(result["coin"]) == ["BTC", "SOL", "flx:TSLA"]
    assert [float(v) for v in result["paid"]] == [-1.0, 0.0, -0.51]
    assert [float(v) for v in result["received"]] == [0.5, 0.5, 0.0]
    assert [float(v) for v in result["net"]] == [-0.5, 0.5, -0.51]
    assert list(result["payments"]) == [2, 2, 2]
    assert list(result["first"]) == list(result["last"])
    assert list(result["first"]) == list(times([MONDAY, MONDAY + DAY, MONDAY + DAY + HOUR]))
    money = str(EXACT) if kind == "exact" else "float64"
    assert list(result.dtypes.astype(str)) == [
        *("str", money, money, money, "int64"),
        *("datetime64[ms, UTC]", "datetime64[ms, UTC]"),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", GROUPS, ids=str)
def test_sums_equal_on_every_engine(engine, kind, by):
    rows = as_numbers(pd.concat([funding(), funding().assign(usdc=[0.5, 0.0, -0.26])]), kind)
    expected = type(engine)("pandas").take(sums(rows, by))
    assert engine.take(sums(engine.give(rows), by)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_few_rows_keep_dtypes(kind):
    rows = as_numbers(funding(), kind)
    full = sums(rows, ["coin", "day"])
    for few in (rows.iloc[:0], rows.iloc[:1]):
        result = sums(few, ["coin", "day"])
        assert len(result) == len(few)
        assert list(result.dtypes) == list(full.dtypes)
    nothing = sums(rows.iloc[:0], None).iloc[0]
    assert (nothing["net"], nothing["payments"]) == (0, 0)
    assert pd.isna(nothing["first"])
    absent = as_numbers(funding().assign(usdc=[-1.0, float("nan"), 2.0]), kind)
    assert sums(absent, None)["payments"].item() == 2


def test_sums_ignore_row_order():
    rows = funding()
    shuffled = rows.sample(frac=1, random_state=2)
    before = shuffled.copy(deep=True)
    pd.testing.assert_frame_equal(sums(rows), sums(shuffled))
    pd.testing.assert_frame_equal(shuffled, before)


def test_errors_of_sums():
    with pytest.raises(MissingColumns, match="funding: the frame lacks the columns time, usdc"):
        sums(funding()[["coin"]])
    with pytest.raises(MissingColumns, match=r"^funding.*usdc is String"):
        sums(funding().assign(usdc="1.0"))
    with pytest.raises(MissingColumns, match=r"^funding: the frame has no columns"):
        sums(pd.DataFrame())
    for name in ("time", "paid", "received", "net", "payments", "first", "last"):
        with pytest.raises(ValueError, match=f"'{name}': it is an aggregated column"):
            sums(funding(), name)


payments = st.lists(
    st.tuples(st.sampled_from(["BTC", "ETH"]), st.decimals(-9, 9, places=6, allow_nan=False)),
    min_size=1,
    max_size=20,
)


@given(payments)
def test_groups_add_up_to_total(rows):
    frame = pd.DataFrame(
        {
            "coin": [coin for coin, _ in rows],
            "time": times(MONDAY + n for n in range(len(rows))),
            "usdc": pd.array([usdc for _, usdc in rows], dtype=EXACT),
        }
    )
    by_coin, total = sums(frame), sums(frame, None).iloc[0]
    assert total["net"] == sum(usdc for _, usdc in rows) == sum(by_coin["net"])
    assert total["net"] == total["paid"] + total["received"]
    assert total["paid"] <= 0 <= total["received"]
    assert by_coin["payments"].sum() == len(rows)


def test_sums_of_million_rows_add_up():
    rng = np.random.default_rng(3)
    n = 1_000_000
    frame = pd.DataFrame(
        {
            "coin": pd.array(rng.choice(["BTC", "ETH"], n), dtype="str"),
            "time": times(MONDAY + HOUR * rng.integers(0, 24 * 30, n)),
            "usdc": rng.normal(size=n),
        }
    )
    result = sums(frame, ["coin", "day"])
    assert len(result) == 60
    assert result["net"].sum() == pytest.approx(frame["usdc"].sum())


def test_sums_of_simulated_accounts(world, rows_of):
    for user, truth in world.expected.items():
        assert sums(rows_of("builderApprovedFundingByTime", user), None)["net"].item() == (
            truth.funding
        )


def test_sums_of_recorded_rows_equal_decimals(recorded):
    """The 218 payments of one account are also summed in decimals."""
    answer = recorded("userFunding")
    frame = pd.DataFrame(
        {
            "user": ME,
            "coin": [row["delta"]["coin"] for row in answer],
            "time": times(row["time"] for row in answer),
            "usdc": pd.array([Decimal(row["delta"]["usdc"]) for row in answer], dtype=EXACT),
        }
    )
    total = sums(frame, None).iloc[0]
    assert total["payments"] == 218
    assert total["net"] == sum(Decimal(row["delta"]["usdc"]) for row in answer)


def _payments(*rows):
    coins, hours, usdc = zip(*rows, strict=True)
    at = times(MONDAY + hour * HOUR for hour in hours)
    return pd.DataFrame({"coin": coins, "time": at, "usdc": usdc, "user": ME})


UNORDERED = _payments(
    ("ETH", 30, 7.0), ("BTC", 5, -3.0), ("BTC", 2, 0.5), ("BTC", 5, 1.25), ("BTC", 170, -8.0)
)


def test_times_of_first_and_last_payment():
    result = sums(UNORDERED)
    assert list(result["first"]) == list(times([MONDAY + 2 * HOUR, MONDAY + 30 * HOUR]))
    assert list(result["last"]) == list(times([MONDAY + 170 * HOUR, MONDAY + 30 * HOUR]))
    assert result[["paid", "received", "net"]].to_numpy().tolist() == [
        [-11.0, 1.75, -9.25],
        [0.0, 7.0, 7.0],
    ]


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_amount_are_no_payments(name, kind):
    """Null and NaN are no payments, the unknown coin comes last, and no row sums to 0."""
    rows = pd.DataFrame(
        {
            "coin": pd.array([None, "ETH", "BTC", "BTC", None, "BTC", "BTC"], dtype="str"),
            "time": times(MONDAY + hour * HOUR for hour in (9, 1, 2, 3, 4, 5, 6)),
            "usdc": [-3.0, 0.5, 0.1, float("nan"), 1.25, 0.2, -0.7],
        }
    )
    engine = Engine(name)
    given = engine.give(as_numbers(rows, kind))
    if (name, kind) == ("polars", "float"):  # NaN, which became null on the way, is a number there
        given = given.with_columns(usdc=pl.Series(rows["usdc"].to_numpy()))
    result = engine.take(sums(given))
    money = [[row[name] for name in ("paid", "received", "net")] for row in result]
    exactly = [["-0.7", "0.3", "-0.4"], ["0", "0.5", "0.5"], ["-3", "1.25", "-1.75"]]
    if kind == "exact":  # to the last digit: a sum of floats would be 0.30000000000000004
        assert money == [[Decimal(number) for number in numbers] for numbers in exactly]
    else:
        assert money == [pytest.approx([float(n) for n in numbers]) for numbers in exactly]
    assert [(row["coin"], row["payments"]) for row in result] == [("BTC", 3), ("ETH", 1), (None, 2)]
    ends = [(row["first"], row["last"]) for row in engine.take(sums(given, None))]
    assert ends == [tuple(times([MONDAY + HOUR, MONDAY + 9 * HOUR]))]
    few = as_numbers(rows, kind).iloc[[3]].astype({"coin": "str"})
    (nothing,) = engine.take(sums(engine.give(few), None))
    assert [float(nothing[n]) for n in ("paid", "received", "net", "payments")] == [0] * 4
    assert sums(as_numbers(rows, kind))["net"].dtype == as_numbers(rows, kind)["usdc"].dtype


def test_accrual_separates_accounts_and_coins():
    """Neither order of rows nor the same hour of another account changes a curve."""
    rows = pd.concat([UNORDERED, UNORDERED.assign(user=OTHER, usdc=UNORDERED["usdc"] * 10)])
    result = accrual(rows, ["user", "coin"], step="day")
    assert list(result.columns) == ["user", "coin", "time", "usdc", "payments", "total"]
    assert result["total"].tolist() == [-1.25, -9.25, 7.0, -12.5, -92.5, 70.0]
    assert result["payments"].tolist() == [3, 1, 1, 3, 1, 1]
    assert result["usdc"].tolist() == [-1.25, -8.0, 7.0, -12.5, -80.0, 70.0]
    for name in ("time", "usdc", "payments", "total"):
        with pytest.raises(ValueError, match=f"'{name}': it is an aggregated column"):
            accrual(rows, name)
    for kind in KINDS:
        full = accrual(as_numbers(rows, kind), "coin")
        assert list(accrual(as_numbers(rows, kind).iloc[:0], "coin").dtypes) == list(full.dtypes)
        assert full["usdc"].dtype == full["total"].dtype == as_numbers(rows, kind)["usdc"].dtype
        assert full["payments"].dtype == "int64"
    with pytest.raises(MissingColumns, match=r"^funding: "):
        accrual(rows.iloc[:1].assign(usdc=float("inf")))
