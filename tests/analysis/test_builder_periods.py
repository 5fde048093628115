"""Users of several builders over periods, cohorts and lifetime values, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from toolkit import builders
from toolkit.analysis.common.estimate import wilson_interval
from toolkit.errors import MissingColumns, MissingFees

from .examples import DAY, MONDAY, times

B, C, U = "0x" + "b" * 40, "0x" + "c" * 40, "0x" + "u" * 40
WEEK = 7 * DAY
NAN = float("nan")
Z90 = 1.6448536269514722


def fills(*rows):
    """Return fills of (user, builder, size at 100 USD, builder fee, ms after Monday)."""
    frame = pd.DataFrame(list(rows), columns=["user", "builder", "sz", "builder_fee", "ms"])
    frame["time"] = times(MONDAY + frame.pop("ms"))
    plain = {"coin": "BTC", "px": 100.0, "side": "B", "fee": 0.5, "fee_token": "USDC"}
    return frame.assign(**plain, dir="Open Long", oid=range(len(frame)), tid=1)


def weeks():
    """Return fills of two builders over five weeks; addresses are written in both ways."""
    return fills(
        ("v", B, 9.0, 9.0, -DAY),
        ("w", C, 9.0, 9.0, -DAY),
        ("u", B.upper().replace("X", "x"), 1.0, 0.25, 0),
        ("v", B, 2.0, 0.5, DAY),
        ("u", C, 5.0, 0.25, DAY),
        ("x", C, 4.0, 1.0, WEEK),
        ("v", B, 3.0, 0.5, 2 * WEEK),
        ("v", B, 3.0, 0.25, 2 * WEEK + 1),
        ("w", B, 2.0, 0.25, 2 * WEEK + DAY),
        ("y", None, 50.0, NAN, 2 * WEEK + DAY),
        ("v", B, 6.0, 0.0, 3 * WEEK),
        ("z", B, 1.0, 0.0, 4 * WEEK - 1),
        ("v", B, 7.0, 2.0, 4 * WEEK),
        ("z", B, 7.0, 2.0, 4 * WEEK + DAY),
        ("z", C, 7.0, 2.0, 4 * WEEK + 3 * DAY),
    )


def test_weeks_of_two_builders_by_hand():
    """v of B and w of C are older than the weeks; the last week is not over."""
    made = builders.activity(
        weeks(), since=MONDAY, until=MONDAY + 4 * WEEK + 2 * DAY, level=0.9
    )  # fmt: skip
    assert made["builder"].tolist() == [B] * 5 + [C] * 5
    assert made["time"].tolist() == list(times(MONDAY + WEEK * n for n in [*range(5)] * 2))
    counts = ["active", "new", "returning", "before", "kept", "fills"]
    assert made[counts].values.tolist() == [
        [2, 1, 1, 0, 0, 2],
        [0, 0, 0, 2, 0, 0],
        [2, 1, 1, 0, 0, 3],
        [2, 1, 1, 2, 1, 2],
        [2, 0, 2, 2, 2, 2],
        [1, 1, 0, 0, 0, 1],
        [1, 1, 0, 1, 0, 1],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    retention = [NAN, 0, NAN, 0.5, NAN, NAN, 0, 0, NAN, NAN]
    assert made["retention"].tolist() == pytest.approx(retention, nan_ok=True)
    low, high = wilson_interval(0.5, 2, Z90)
    assert (made["low"][3], made["high"][3]) == pytest.approx((low, high))
    assert made["volume"].tolist() == [300, 0, 800, 700, 1400, 500, 400, 0, 0, 0]
    assert made["revenue"].tolist() == [0.75, 0, 1, 0, 4, 0.25, 1, 0, 0, 0]
    shares = [3 / 8, 0, 1, 1, 1, 5 / 8, 1, 0, 0, 0]
    assert made["volume_share"].tolist() == pytest.approx(shares)
    shares = [0.75, 0, 1, NAN, 1, 0.25, 1, 0, NAN, 0]
    assert made["revenue_share"].tolist() == pytest.approx(shares, nan_ok=True)
    assert made["complete"].tolist() == [True] * 4 + [False] + [True] * 4 + [False]
    facts = made.attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("builders.activity", "week")
    assert list(facts["inputs"]) == ["fills"]
    late = weeks().assign(user="0xA" + "0" * 39, tid=2)
    one = builders.activity(weeks(), builder=C.upper().replace("X", "x"), since=MONDAY)
    assert one["builder"].tolist() == [C] * 5
    assert one["volume_share"].tolist()[:2] == pytest.approx([5 / 8, 1])
    assert set(builders.activity(late, builder=B)["active"]) == {0, 1}


def test_days_and_months_of_builders():
    rows = fills(
        ("u", B, 1.0, 0.1, DAY - 1),
        ("v", B, 2.0, 0.1, 2 * DAY),
        ("v", B, 4.0, 0.1, 30 * DAY - 1),  # the end of September
        ("v", B, 8.0, 0.1, 30 * DAY),
        ("u", C, 8.0, 0.3, 61 * DAY),
    )
    days = builders.activity(rows, "day", builder=B, since=MONDAY, until=MONDAY + 3 * DAY)
    assert days["time"].tolist() == list(times(MONDAY + DAY * n for n in range(3)))
    assert days["active"].tolist() == [1, 0, 1]
    assert days["complete"].tolist() == [True] * 3
    months = builders.activity(rows, "month", since=MONDAY + 1, until=MONDAY + 61 * DAY + 1)
    assert months["builder"].tolist() == [B, B, B, C]
    starts = [MONDAY, MONDAY + 30 * DAY, MONDAY + 61 * DAY, MONDAY + 61 * DAY]
    assert months["time"].tolist() == list(times(starts))
    assert months["volume"].tolist() == [700, 800, 0, 800]
    assert months["kept"].tolist() == [0, 1, 0, 0]
    assert months["complete"].tolist() == [False, True, False, False]
    assert months["retention"].tolist() == pytest.approx([NAN, 0.5, NAN, NAN], nan_ok=True)
    later = builders.activity(rows, "month", since=MONDAY + DAY, until=MONDAY + 61 * DAY + 1)
    assert later["volume"].tolist() == [600, 800, 0, 800]
    assert later["kept"].tolist() == [0, 1, 0, 0]
    assert len(builders.activity(rows[:0])) == 0
    nobody = builders.activity(rows, builder=U)
    assert (len(nobody), nobody["active"].dtype) == (0, "int64")
    none = builders.activity(rows[:0], since=MONDAY, until=MONDAY + WEEK)
    assert none.columns.tolist() == months.columns.tolist()
    with pytest.raises(ValueError, match="unknown by='hour'; choose one of day, week, month"):
        builders.activity(rows, "hour")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        builders.activity(rows, level=2)


def test_cohorts_of_two_builders_by_hand():
    """Fills of C do not count; of B the cohorts are v before the weeks, u and w, and z."""
    made = builders.cohorts(weeks(), B, since=MONDAY - DAY, until=MONDAY + 4 * WEEK)
    starts = [-1] * 5 + [0] * 4 + [2] * 2 + [3]
    assert made["cohort"].tolist() == list(times(MONDAY + WEEK * n for n in starts))
    assert made["age"].tolist() == [*range(5), *range(4), 0, 1, 0]
    assert made["users"].tolist() == [1] * 12
    assert made["active"].tolist() == [1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1]
    assert made["volume"].tolist() == [900, 200, 0, 600, 600, 100, 0, 0, 0, 200, 0, 100]
    assert made["revenue"].tolist() == [9, 0.5, 0, 0.75, 0, 0.25, 0, 0, 0, 0.25, 0, 0]
    assert made["complete"].all()
    assert made["earlier"].tolist() == [True] * 5 + [False] * 7
    later = builders.cohorts(weeks(), B, until=MONDAY + 4 * WEEK + 1)
    assert len(later) == len(made) + 4
    assert later["complete"].sum() == len(made)
    open_weeks = later[~later["complete"]]
    assert open_weeks["age"].tolist() == [5, 4, 2, 1]
    assert open_weeks[["active", "retention", "volume", "revenue"]].isna().all(axis=None)
    whole = builders.cohorts(weeks(), C)  # until the last fill of any user
    assert whole["cohort"].nunique() == 4
    facts = made.attrs["toolkit"]
    assert (facts["helper"], list(facts["inputs"])) == ("builders.cohorts", ["fills"])
    none = builders.cohorts(weeks(), U)
    assert (len(none), none["cohort"].dtype) == (0, "datetime64[ms, UTC]")


def test_lifetime_value_of_four_users_by_hand():
    """p and q are watched for three weeks, r for two and s for less than one."""
    rows = fills(
        ("p", B, 1.0, 1.0, 0),
        ("p", B, 1.0, 2.0, WEEK - 1),
        ("p", B, 1.0, 4.0, WEEK),
        ("q", B, 1.0, 8.0, DAY),
        ("q", B, 1.0, 0.5, DAY + 2 * WEEK),
        ("r", B, 1.0, 3.0, WEEK + DAY),
        ("r", B, 1.0, 2.0, 2 * WEEK + DAY),
        ("s", B, 1.0, 99.0, 3 * WEEK),
        ("s", C, 1.0, 77.0, 0),
    )
    until = MONDAY + 3 * WEEK + DAY
    found = builders.lifetime_value(rows, B, weeks=4, until=until, level=0.8)
    means = np.array([(3 + 8 + 3) / 3, (4 + 0 + 2) / 3, 0.5 / 2])
    value = np.cumsum(means)
    curve = found.curve
    assert curve["weeks"].tolist() == [1, 2, 3, 4]
    assert curve["at_risk"].tolist() == [3, 3, 2, 0]
    assert curve["at_risk"].dtype == "int64"
    assert curve["value"].tolist() == pytest.approx([*value, NAN], nan_ok=True)
    money = np.array([[3, 4, 0], [8, 0, 0.5], [3, 2, NAN]])
    pull = np.nan_to_num(money - means) * (4 / np.array([3, 3, 2]))
    spread = np.sqrt((np.cumsum(pull, axis=1) ** 2).sum(axis=0) / 3 / 4)
    factor = np.exp(spread * stats.t.ppf(0.9, [2, 2, 1]) / value)
    assert curve["low"].tolist() == pytest.approx([*(value / factor), NAN], nan_ok=True)
    assert curve["high"].tolist() == pytest.approx([*(value * factor), NAN], nan_ok=True)
    assert found.n == 4
    assert found.params["name"].tolist()[:2] == ["within 1 week", "within 2 weeks"]
    assert found.params["estimate"].equals(curve["value"].rename("estimate"))
    assert found.params["high"].equals(curve["high"])
    assert found.method == "mean revenue by week of age over the users watched so long, added up"
    for frame in (found.params, curve):
        facts = frame.attrs["toolkit"]
        assert (facts["helper"], facts["level"]) == ("builders.lifetime_value", 0.8)
        assert list(facts["inputs"]) == ["fills"]
    alone = builders.lifetime_value(rows[:3], B, weeks=1, until=until).curve
    assert alone["value"].item() == 3
    assert alone[["low", "high"]].isna().all(axis=None)


def test_errors_of_builder_fills():
    for name in ("user", "px", "fee", "builder_fee"):
        with pytest.raises(MissingColumns, match=f"^fills: .*{name}"):
            builders.cohorts(weeks().drop(columns=name), B)
    with pytest.raises(MissingColumns, match=r"^fills: .*px is String"):
        builders.cohorts(weeks().astype({"px": "str"}), B)
    nobody = weeks()
    nobody.loc[[2, 9], "user"] = None  # the second has no builder
    for helper in (builders.cohorts, builders.lifetime_value):
        with pytest.raises(MissingColumns, match=r"^fills: column user is missing in 1 of 10 rows"):
            helper(nobody, B)
    with pytest.raises(MissingColumns, match=r"^fills: column user is missing in 1 of 14 rows"):
        builders.activity(nobody)
    silent = weeks().assign(builder_fee=NAN)
    with pytest.warns(MissingFees, match="^fills: column builder_fee is missing"):
        made = builders.cohorts(silent, B, until=MONDAY + 4 * WEEK)
    assert made["revenue"].sum() == 0
