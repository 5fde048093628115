"""Builders: examples by hand, identities, resampling, and the simulated exchange."""

from functools import partial

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats

import toolkit as tk
from toolkit import builders
from toolkit.errors import MissingColumns, MissingDirections, MissingFees
from toolkit.service.tables import approval_intervals
from toolkit.simulation.agents.takers import FEES_BPS
from toolkit.statistics import wilson_interval

from .examples import DAY, HOUR, MONDAY, times, wrong_errors

B, C, U = ("0x" + letter * 40 for letter in "bcu")
NAN = float("nan")
WEEK = 7 * DAY
Z90 = 1.6448536269514722


def fills(*rows):
    """Return fills of (user, builder, size at 100 USD, builder fee, ms after Monday)."""
    names = ["user", "builder", "sz", "builder_fee", "ms"]
    frame = pd.DataFrame(list(rows), columns=names).astype({"sz": float, "builder_fee": float})
    frame["time"] = times(MONDAY + frame.pop("ms").astype("int64"))
    frame["builder"] = frame["builder"].astype("str")
    frame["user"] = frame["user"].astype("str")
    plain = {"coin": "BTC", "px": 100.0, "side": "B", "fee": 0.5, "fee_token": "USDC"}
    return frame.assign(**plain, dir="Open Long", oid=range(len(frame)), tid=1)


SOME = (
    ("u", B, 1.0, 0.01, 0),
    ("u", B, 3.0, 0.03, 1),
    ("u", C, 2.0, 0.10, 2),
    ("v", None, 5.0, NAN, DAY),
)


def test_revenue_of_mixed_fills_by_hand():
    """0.2 PURR at 0.5 are 10 cents; 0.3 HYPE have no price; a conversion is no trade."""
    rows = fills(
        ("u", B, 10.0, 0.01, DAY), ("u", B, 10.0, 0.2, 0), ("v", B, 2.0, 0.3, 0),
        ("v", C, 1.0, 0.04, 0), ("v", None, 9.0, NAN, 0), ("u", B, 7.0, 0.5, 0),
    )  # fmt: skip
    rows["coin"] = ["BTC", "PURR/USDC", "ETH", "BTC", "BTC", "#12"]
    rows["px"] = [100.0, 0.5, 100.0, 100.0, 100.0, 0.5]
    rows["fee_token"] = ["USDC", "PURR", "HYPE", "USDC", "USDC", "USDC"]
    rows.loc[5, "dir"] = "Split Outcome"

    def found(result):
        names = ["fills", "volume", "revenue", "fee_bps", "unpriced"]
        assert list(result.columns)[-5:] == names
        return [tuple(map(float, row)) for row in result[names].itertuples(index=False)]

    near = pytest.approx
    assert found(builders.revenue(rows)) == [near((4, 1305, 0.15, 0.15 / 1105 * 1e4, 1))]
    assert found(builders.revenue(rows, B.upper().replace("0X", "0x"), ["user", "day"])) == [
        near((1, 5, 0.1, 200, 0)), near((1, 1000, 0.01, 0.1, 0)),
        near((1, 200, 0, NAN, 1), nan_ok=True),
    ]  # fmt: skip
    assert builders.revenue(rows, by="user")["user"].tolist() == ["u", "v"]
    assert found(builders.revenue(rows, "0x" + "e" * 40)) == [near((0, 0, 0, NAN, 0), nan_ok=True)]
    both = builders.revenue(fills(*SOME), by="builder")
    assert both["builder"].tolist() == [B, C]
    assert both["fee_bps"].tolist() == pytest.approx([1.0, 5.0])


def test_missing_price_or_size_raises():
    """One of the two fills through B, and one of all four fills."""
    for name in ("px", "sz"):
        rows = fills(*SOME)
        rows.loc[1, name] = NAN
        few, whole = (f"column {name} is missing in 1 of {n} rows" for n in (2, 4))
        table = [
            (partial(builders.revenue, rows, B), MissingColumns, few),
            (partial(builders.cohorts, rows, B), MissingColumns, few),
            (partial(builders.lifetime_value, rows, B), MissingColumns, few),
            (partial(builders.routing, rows, B), MissingColumns, whole),
            (partial(builders.attach_rate, rows, B), MissingColumns, whole),
        ]
        assert wrong_errors(table) == []
        assert builders.revenue(rows, C)["volume"].item() == 200  # its fill is complete


def test_missing_builder_fee_is_zero():
    """Of two fees in HYPE, only the one with a builder fee counts as unpriced."""
    rows = fills(("u", B, 10.0, 0.5, 0), ("u", B, 20.0, NAN, 1)).assign(fee_token="HYPE")
    row = builders.revenue(rows, B).iloc[0]
    assert (row["unpriced"], row["revenue"], row["fee_bps"]) == (1, 0.0, 0.0)


def test_routing_by_hand():
    rows = fills(*SOME, ("v", None, 7.0, NAN, 3), ("v", None, 9.0, NAN, 4))
    rows["twap_id"] = pd.array([None] * 4 + [5, None], dtype="Int64")
    rows.loc[5, "dir"] = "Liquidated Cross Long"
    row = builders.routing(rows, B).iloc[0]
    assert row[["fills", "routed", "elsewhere", "direct", "unroutable"]].tolist() == [6, 2, 1, 1, 2]
    assert row[["routed_usd", "elsewhere_usd", "direct_usd"]].tolist() == [400, 200, 500]
    assert row["unroutable_usd"] == 1600
    blind = builders.routing(rows.drop(columns=["twap_id", "dir"]), B).iloc[0]
    assert (blind["direct"], blind["unroutable"]) == (3, 0)


SPELL = st.tuples(
    st.sampled_from("uvw"), st.sampled_from([B, C, None]), st.integers(1, 9), st.integers(0, 99)
)


@settings(max_examples=8)
@given(st.lists(SPELL, max_size=30))
def test_routes_add_up(rows):
    """The routes add up to all fills, and the builders' revenues to the total."""
    result = fills(*((u, b, float(s), NAN if b is None else c / 100, c) for u, b, s, c in rows))
    row = builders.routing(result, B).iloc[0]
    assert row["fills"] == row[["routed", "elsewhere", "direct", "unroutable"]].sum() == len(rows)
    usd = [f"{way}_usd" for way in ("routed", "elsewhere", "direct", "unroutable")]
    assert row["volume"] == pytest.approx(row[usd].sum())
    whole = builders.revenue(result)["revenue"].item()
    assert builders.revenue(result, by=["builder", "user"])["revenue"].sum() == pytest.approx(whole)
    assert whole == pytest.approx(sum(c / 100 for _, b, _, c in rows if b is not None))
    found = builders.attach_rate(result, B, weight="fills").iloc[0]
    if rows:
        assert found["rate"] == pytest.approx(sum(b == B for _, b, _, _ in rows) / len(rows))


def test_attach_rate_of_three_users():
    """u routes 4 of 6, v none of 5, w 3 of 7, and its TWAP of 9 cannot be routed: p = 7/18.

    With 2 degrees Student's quantile of 0.75 is sqrt(2/3); the variance is 3/2 of the squares.
    """
    more = [("w", B, 3.0, 0.02, 5), ("w", C, 4.0, 0.01, 6), ("w", None, 9.0, NAN, 7)]
    rows = fills(*SOME, *more)
    rows["twap_id"] = pd.array([None] * 6 + [5], dtype="Int64")
    rows["venue"] = pd.array(["x", "x", "x", "x", None, None, None], dtype="str")
    row = builders.attach_rate(rows, B, level=0.5).iloc[0]
    p = 7 / 18
    squares = (4 - 6 * p) ** 2 + (5 * p) ** 2 + (3 - 7 * p) ** 2
    wide = (2 / 3) ** 0.5 * (squares * 3 / 2) ** 0.5 / 18 / (p * (1 - p))
    assert row[["users", "n", "rate"]].tolist() == [3, 6, pytest.approx(p)]
    for name, sign in (("low", -1), ("high", 1)):
        assert row[name] == pytest.approx(1 / (1 + np.exp(-np.log(p / (1 - p)) - sign * wide)))
    alone = builders.attach_rate(rows.iloc[:3], B).iloc[0]
    assert alone["users"] == 1
    assert alone[["low", "high"]].isna().all()
    counted = builders.attach_rate(rows, B, weight="fills").iloc[0]
    assert counted[["users", "n", "rate"]].tolist() == [3, 6, 0.5]
    each = builders.attach_rate(rows, B, by="user")
    assert each["user"].tolist() == ["u", "v", "w"]
    assert each["rate"].tolist() == pytest.approx([4 / 6, 0, 3 / 7])
    split = builders.attach_rate(rows, B, by="venue")
    assert split["users"].tolist() == [2, 1]
    assert split["rate"].tolist() == pytest.approx([4 / 11, 3 / 7])
    facts = split.attrs["toolkit"]
    assert (facts["by"], facts["level"]) == (["venue"], 0.95)
    routes = builders.routing(rows, B, by="venue")
    assert routes["unroutable_usd"].tolist() == [0, 900]


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
    assert len(builders.activity(rows, builder=U)) == 0


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
    assert len(builders.cohorts(weeks(), U)) == 0


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
    assert curve.attrs["toolkit"]["level"] == 0.8
    alone = builders.lifetime_value(rows[:3], B, weeks=1, until=until).curve
    assert alone["value"].item() == 3
    assert alone[["low", "high"]].isna().all(axis=None)


def test_lifetime_interval_coverage():
    """Fifteen users bring 1 USD on average, from an exponential distribution."""
    hits, seeds, level = 0, 50, 0.9
    for seed in range(seeds):
        fees = np.random.default_rng(seed).exponential(1.0, 15)
        rows = fills(*((f"u{n}", B, 1.0, fee, n) for n, fee in enumerate(fees)))
        result = builders.lifetime_value(rows, B, weeks=1, until=MONDAY + 2 * WEEK, level=level)
        hits += result.params["low"].item() <= 1 <= result.params["high"].item()
    low, high = stats.binom.ppf([0.001, 0.999], seeds, level)
    assert low <= hits <= high, hits


def test_spans_by_hand():
    """Fills without, with, with, without, with approval: two spans, the second without an end."""
    rows = fills(*(("U", None, 1.0, NAN, n * HOUR) for n in range(5)), ("x", None, 1.0, NAN, 0))
    result = builders.approval_spans(rows.iloc[[1, 2, 4]], rows)
    stamps = list(times(MONDAY + n * HOUR for n in range(5)))
    first, second = result.to_dict("records")
    assert [first[name] for name in ("after", "first", "last", "before")] == stamps[:4]
    assert [second[name] for name in ("after", "first", "last")] == [
        stamps[3],
        stamps[4],
        stamps[4],
    ]
    assert pd.isna(second["before"])
    assert result["seen"].tolist() == [2, 1]
    alone = builders.approval_spans(rows.iloc[[1, 2, 4]])
    assert (len(alone), alone["seen"].item()) == (1, 3)
    assert alone[["after", "before"]].isna().all(axis=None)


def test_spans_count_each_coins_payment():
    """One fill, and payments of BTC at hours 1 and 2 and of ETH at hour 1; one row is repeated."""
    ms = [MONDAY + HOUR, MONDAY + HOUR, MONDAY + 2 * HOUR, MONDAY + HOUR]
    paid = pd.DataFrame({"user": "a", "coin": ["BTC", "ETH", "BTC", "ETH"], "time": times(ms)})
    fill = pd.DataFrame({"user": "a", "time": times([MONDAY + HOUR]), "oid": [5]})
    result = builders.approval_spans(fill, funding=paid)
    assert result["seen"].tolist() == [4]
    unnamed = paid.drop(columns="coin")[:3]
    assert builders.approval_spans(fill, funding=unnamed)["seen"].tolist() == [4]


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


def test_simulated_revenue_sums_builder_fees(world, session):
    """The sums are from the exchange's own fills; each builder charges fixed basis points."""
    for builder, bps in zip(session.world["builders"], FEES_BPS, strict=False):
        rows = tk.builder_approved_fills_by_time(builder, 0, session=session)
        approved = set(zip(rows["user"], rows["tid"], rows["oid"], strict=True))
        whole = sum(
            float(fill.builder_fee)
            for user, fill in world.sources.fills
            if fill.builder == builder and (user, fill.tid, fill.oid) in approved
        )
        assert whole > 0
        found = builders.revenue(rows, builder).iloc[0]
        assert found["revenue"] == pytest.approx(whole)
        assert found["fee_bps"] == pytest.approx(bps, abs=0.01)


def test_simulated_spans_contain_approvals(world, session):
    """Each span is within one period of approval, and its bounds are in the gaps around it."""
    for builder in session.world["builders"]:
        approved = tk.builder_approved_fills_by_time(builder, 0, session=session)
        paid = tk.builder_approved_funding_by_time(builder, 0, session=session)
        users = sorted(approved["user"].unique())
        every = tk.many(tk.user_fills_by_time, users, 0, session=session)
        truth = approval_intervals(world.sources.approvals)
        result = builders.approval_spans(approved, every, paid)
        assert set(users) <= set(result["user"])
        for row in result.itertuples():
            first, last, after, before = (
                None if pd.isna(stamp) else stamp.value // 10**6
                for stamp in (row.first, row.last, row.after, row.before)
            )
            own = [(begin, end) for who, begin, end in truth[row.user] if who == builder]
            begin = max(begin for begin, _ in own if begin <= first)
            (end,) = (end for begin, end in own if begin <= last and (end is None or last < end))
            assert after is None or after < begin
            assert before is None or (end is not None and end <= before)


def test_simulated_cohorts_add_up(session):
    builder = session.world["builders"][0]
    rows = tk.builder_approved_fills_by_time(builder, 0, session=session)
    cohorts = builders.cohorts(rows, builder, until="2025-10-20")
    assert cohorts["complete"].all()
    users = rows.loc[rows["builder"] == builder, "user"].nunique()
    assert cohorts.loc[cohorts["age"] == 0, "active"].sum() == users
    total = builders.revenue(rows, builder)["revenue"].item()
    assert cohorts["revenue"].sum() == pytest.approx(total)
    value = builders.lifetime_value(rows, builder, weeks=1, until="2025-10-20")
    assert value["within 1 week"] == pytest.approx(total / users)


def test_errors_of_builders():
    rows, some = weeks(), fills(*SOME)
    nobody = rows.copy()
    nobody.loc[[2, 9], "user"] = None  # the second has no builder
    groups = ("fills", "volume", "revenue", "time", "px")
    table = [
        *((partial(builders.revenue, some, by=name), ValueError, f"'{name}'") for name in groups),
        (lambda: builders.cohorts(nobody, B), MissingColumns, "user is missing in 1 of 10 rows"),
        (lambda: builders.lifetime_value(nobody, B), MissingColumns, "user is missing in 1 of 10"),
        (lambda: builders.activity(nobody), MissingColumns, "user is missing in 1 of 14 rows"),
        (lambda: builders.attach_rate(some, B, weight="coins"), ValueError, '"usd" or "fills"'),
        (lambda: builders.lifetime_value(some, B, weeks=0), ValueError, "weeks"),
        (lambda: builders.routing(some, B, by="routed"), ValueError, "'routed'"),
        (lambda: builders.activity(some, "hour"), ValueError, "day, week, month"),
        (lambda: builders.activity(some, level=2), ValueError, "level"),
    ]  # fmt: skip
    assert wrong_errors(table) == []
    unnamed = some.assign(dir=pd.array([None] * len(some), dtype="str"), coin="#12")
    for helper in (builders.revenue, partial(builders.routing, builder=B)):
        with pytest.warns(MissingDirections, match="^fills: column dir is missing"):
            helper(unnamed)
    with pytest.warns(MissingFees, match="^fills: column builder_fee is missing"):
        made = builders.cohorts(rows.assign(builder_fee=NAN), B, until=MONDAY + 4 * WEEK)
    assert made["revenue"].sum() == 0
