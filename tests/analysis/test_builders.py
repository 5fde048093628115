"""Builders: examples by hand, identities, resampling, and the simulated exchange."""

from decimal import Decimal
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from scipy import stats

import toolkit as tk
from tests.engines import ENGINES, Engine
from toolkit import builders
from toolkit.analysis.common.fill_kinds import MissingDirections
from toolkit.errors import MissingColumns
from toolkit.service.tables import approval_intervals
from toolkit.simulation.agents.builders import FEES_BPS

from .examples import DAY, HOUR, MONDAY, as_numbers, times

B, C = "0x" + "b" * 40, "0x" + "c" * 40
NAN = float("nan")
WEEK = 7 * DAY
Row = tuple[str, str | None, float, float, int]


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


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_revenue_by_hand(kind):
    """Fees of 1 and 3 cents on 100 and 300 USD are 1 bps; the other's 10 cents are 5 bps."""
    row = builders.revenue(as_numbers(fills(*SOME), kind), B.upper().replace("0X", "0x")).iloc[0]
    assert (row["fills"], row["volume"], row["unpriced"]) == (2, 400.0, 0)
    assert float(row["revenue"]) == pytest.approx(0.04)
    assert row["fee_bps"] == pytest.approx(1.0)
    both = builders.revenue(as_numbers(fills(*SOME), kind), by="builder")
    assert both["builder"].tolist() == [B, C]
    assert both["fee_bps"].tolist() == pytest.approx([1.0, 5.0])
    if kind == "exact":
        assert both["revenue"].tolist() == [Decimal("0.04"), Decimal("0.10")]


@pytest.mark.parametrize("kind", ["float", "exact"])
@pytest.mark.parametrize("name", ["px", "sz"])
def test_missing_price_or_size_raises(engine, kind, name):
    """Null or NaN, on every engine: one of the two fills through B, and one of all four fills."""
    gone = fills(*SOME)
    gone.loc[1, name] = NAN
    rows = engine.give(as_numbers(gone, kind))
    whole = rf"fills: column {name} is missing in 1 of 4 rows"
    calls = {
        rf"column {name} is missing in 1 of 2 rows": (
            lambda: builders.revenue(rows, B),
            lambda: builders.cohorts(rows, B),
            lambda: builders.lifetime_value(rows, B),
        ),
        whole: (lambda: builders.routing(rows, B), lambda: builders.attach_rate(rows, B)),
    }
    for words, each in calls.items():
        for call in each:
            with pytest.raises(MissingColumns, match=words):
                call()
    assert engine.take(builders.revenue(rows, C))[0]["volume"] == 200  # its fill is complete


@pytest.mark.parametrize("lazy", [False, True])
def test_nan_price_in_polars_raises(lazy):
    gone = pl.from_pandas(fills(*SOME)).with_columns(px=pl.Series([100.0, NAN, 100.0, 100.0]))
    rows = gone.lazy() if lazy else gone
    with pytest.raises(MissingColumns, match="column px is missing in 1 of 2 rows"):
        builders.revenue(rows, B)
    with pytest.raises(MissingColumns, match="column px is missing in 1 of 4 rows"):
        builders.routing(rows, B)


def test_fees_in_other_tokens_by_hand():
    """A spot buy of PURR pays in PURR at the price of the fill; a fee in HYPE has no price."""
    rows = fills(("u", B, 10.0, 0.02, 0), ("u", B, 10.0, 0.5, 1))
    rows["coin"], rows["px"] = ["PURR/USDC", "ETH"], [0.5, 3000.0]
    rows["fee_token"] = ["PURR", "HYPE"]
    row = builders.revenue(rows, B).iloc[0]
    assert row["revenue"] == pytest.approx(0.01)
    assert row["unpriced"] == 1
    assert row["fee_bps"] == pytest.approx(0.01 / 5 * 1e4)  # of the fill with a price


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_revenue_of_mixed_fills_by_hand(kind):
    """0.2 PURR at 0.5 are 10 cents; 0.3 HYPE have no price; a conversion is no trade."""
    rows = fills(
        ("u", B, 10.0, 0.01, DAY), ("u", B, 10.0, 0.2, 0), ("v", B, 2.0, 0.3, 0),
        ("v", C, 1.0, 0.04, 0), ("v", None, 9.0, NAN, 0), ("u", B, 7.0, 0.5, 0),
    )  # fmt: skip
    rows["coin"] = ["BTC", "PURR/USDC", "ETH", "BTC", "BTC", "#12"]
    rows["px"] = [100.0, 0.5, 100.0, 100.0, 100.0, 0.5]
    rows["fee_token"] = ["USDC", "PURR", "HYPE", "USDC", "USDC", "USDC"]
    rows.loc[5, "dir"] = "Split Outcome"
    given = as_numbers(rows, kind)

    def found(result):
        names = ["fills", "volume", "revenue", "fee_bps", "unpriced"]
        assert list(result.columns)[-5:] == names
        return [tuple(map(float, row)) for row in result[names].itertuples(index=False)]

    near = pytest.approx
    assert found(builders.revenue(given)) == [near((4, 1305, 0.15, 0.15 / 1105 * 1e4, 1))]
    assert found(builders.revenue(given, B.upper().replace("0X", "0x"), ["user", "day"])) == [
        near((1, 5, 0.1, 200, 0)), near((1, 1000, 0.01, 0.1, 0)),
        near((1, 200, 0, NAN, 1), nan_ok=True),
    ]  # fmt: skip
    assert builders.revenue(given, by="user")["user"].tolist() == ["u", "v"]
    assert found(builders.revenue(given, "0x" + "e" * 40)) == [near((0, 0, 0, NAN, 0), nan_ok=True)]
    facts = builders.revenue(given, by="user").attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("builders.revenue", ["user"])
    assert list(facts["inputs"]) == ["fills"]
    with pytest.raises(MissingColumns, match=r"^fills: the frame lacks the columns side, fee"):
        builders.revenue(given.drop(columns=["side", "fee"]))
    with pytest.raises(MissingColumns, match=r"^fills: column builder_fee is String"):
        builders.revenue(given.assign(builder_fee="1"))
    with pytest.raises(ValueError, match="'revenue': it is an aggregated"):
        builders.revenue(given, by="revenue")


def test_missing_builder_fee_is_zero(engine):
    """Of two fees in HYPE, only the one with a builder fee counts as unpriced."""
    rows = fills(("u", B, 10.0, 0.5, 0), ("u", B, 20.0, NAN, 1)).assign(fee_token="HYPE")
    row = engine.take(builders.revenue(engine.give(rows), B))[0]
    assert (row["unpriced"], row["revenue"], row["fee_bps"]) == (1, 0.0, 0.0)


def test_fee_contains_builder_fee():
    """The builder's revenue is the builder fee, not the builder fee on top of the fee."""
    rows = fills(*SOME)
    paid = tk.pnl.attribution(rows.assign(closed_pnl=0.0)).iloc[0]
    assert builders.revenue(rows)["revenue"].item() == pytest.approx(-paid["builder_fee"])


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


@settings(max_examples=15)
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


def test_attach_rate_by_hand():
    """u routes 400 of 600, v none of 500: 4/11. Residuals 400 - 600 p and -500 p are +-2000/11.

    So the error is sqrt(2 / 1 * 2 * (2000/11)^2) / 1100 = 4000 / 11 / 1100 = 40/121.
    """
    row = builders.attach_rate(fills(*SOME), B, level=0.5).iloc[0]
    assert (row["users"], row["n"]) == (2, 4)
    p = 4 / 11
    assert row["rate"] == pytest.approx(p)
    wide = 1.0 * (40 / 121) / (p * (1 - p))  # Student's quantile of 0.75 with 1 degree is 1
    logits = [np.log(x / (1 - x)) for x in (row["low"], row["high"])]
    assert np.diff(logits)[0] / 2 == pytest.approx(wide)
    assert np.mean(logits) == pytest.approx(np.log(p / (1 - p)))
    one = builders.attach_rate(fills(*SOME[:3]), B).iloc[0]
    assert one["users"] == 1
    assert pd.isna(one[["low", "high"]]).all()


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
    counted = builders.attach_rate(rows, B, weight="fills").iloc[0]
    assert counted[["users", "n", "rate"]].tolist() == [3, 6, 0.5]
    each = builders.attach_rate(rows, B, by="user")
    assert each["user"].tolist() == ["u", "v", "w"]
    assert each["rate"].tolist() == pytest.approx([4 / 6, 0, 3 / 7])
    split = builders.attach_rate(rows, B, by="venue")
    assert split["users"].tolist() == [2, 1]
    assert split["rate"].tolist() == pytest.approx([4 / 11, 3 / 7])
    facts = split.attrs["toolkit"]
    assert (facts["helper"], facts["by"], facts["level"]) == (
        "builders.attach_rate",
        ["venue"],
        0.95,
    )
    routes = builders.routing(rows, B, by="venue")
    assert routes["unroutable_usd"].tolist() == [0, 900]
    facts = routes.attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("builders.routing", ["venue"])


def test_builder_errors_name_the_fills():
    rows = fills(*SOME)
    for helper in (builders.revenue, partial(builders.routing, builder=B)):
        with pytest.raises(MissingColumns, match=r"^fills: .*px"):
            helper(rows.assign(px=NAN))
    unnamed = rows.assign(dir=pd.array([None] * len(rows), dtype="str"), coin="#12")
    for helper in (builders.revenue, partial(builders.routing, builder=B)):
        with pytest.warns(MissingDirections, match="^fills: column dir is missing"):
            helper(unnamed)
    for name in ("fills", "volume", "revenue", "time", "px"):
        with pytest.raises(ValueError, match=f"'{name}'"):
            builders.revenue(rows, by=name)


def crowd(seed, users=60):
    rng = np.random.default_rng(seed)
    keen = rng.beta(2, 2, users)
    who = np.repeat(np.arange(users), rng.integers(1, 30, users))
    mine = rng.random(len(who)) < keen[who]
    rows = (
        (f"u{w}", B if m else None, float(s), 0.01 * s if m else NAN, int(t))
        for w, m, s, t in zip(
            who,
            mine,
            rng.integers(1, 20, len(who)),
            rng.integers(0, 5 * WEEK, len(who)),
            strict=True,
        )
    )
    return fills(*rows)


def test_attach_rate_interval_matches_bootstrap():
    rows = crowd(1)
    result = builders.attach_rate(rows, B).iloc[0]
    each = rows.assign(usd=100 * rows["sz"], mine=(rows["builder"] == B) * 100 * rows["sz"])
    sums = each.groupby("user")[["mine", "usd"]].sum().to_numpy()
    rng = np.random.default_rng(0)
    drawn = sums[rng.integers(0, len(sums), (2000, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    assert result["low"] == pytest.approx(low, abs=0.015)
    assert result["high"] == pytest.approx(high, abs=0.015)


def test_users_before_since_are_not_new():
    fills = pd.DataFrame(
        {"user": ["a", "b", "a"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "fee": 0.2,
         "time": pd.to_datetime(["2025-09-01", "2025-09-09", "2025-09-10"], utc=True),
         "builder": "0xb", "builder_fee": 0.1}
    )  # fmt: skip
    (row,) = builders.activity(fills, since="2025-09-08", until="2025-09-15").to_dict("records")
    assert (row["active"], row["new"], row["returning"]) == (2, 1, 1)


def test_cohorts_by_hand():
    """u and v start in week 0, w in week 1; the data ends on the third day of week 2."""
    rows = fills(
        ("u", B, 1.0, 0.1, 0),
        ("v", B, 1.0, 0.2, DAY),
        ("u", B, 2.0, 0.4, WEEK),
        ("w", B, 1.0, 0.8, WEEK + DAY),
        ("v", None, 9.0, NAN, WEEK + DAY),
        ("w", B, 1.0, 1.6, 2 * WEEK),
    )
    cohorts = builders.cohorts(rows, B, since=MONDAY - WEEK, until=MONDAY + 2 * WEEK + 3 * DAY)
    assert cohorts["cohort"].tolist() == list(times([MONDAY] * 3 + [MONDAY + WEEK] * 2))
    assert cohorts["age"].tolist() == [0, 1, 2, 0, 1]
    assert cohorts["users"].tolist() == [2, 2, 2, 1, 1]
    assert cohorts["active"].fillna(-1).tolist() == [2, 1, -1, 1, -1]
    assert cohorts["retention"].fillna(-1).tolist() == [1.0, 0.5, -1, 1.0, -1]
    assert cohorts["revenue"].fillna(-1).tolist() == pytest.approx([0.3, 0.4, -1, 0.8, -1])
    assert cohorts["complete"].tolist() == [True, True, False, True, False]
    assert not cohorts["earlier"].any()
    assert builders.cohorts(rows, B)["earlier"].tolist() == [True] * 3 + [False] * 2
    whole = builders.cohorts(rows, B, until=MONDAY + 3 * WEEK)
    assert whole["active"].tolist() == [2, 1, 0, 1, 1]  # nobody came back: 0 when the week is over
    assert whole["revenue"].sum() == pytest.approx(builders.revenue(rows, B)["revenue"].item())


def test_lifetime_value_by_hand():
    """u and v are observed for two weeks, w for one.

    First week: (1 + 3 + 5) / 3 = 3; second week, of u and v: (2 + 0) / 2 = 1. The sum is 4.
    """
    rows = fills(
        ("u", B, 1.0, 1.0, 0),
        ("v", B, 1.0, 3.0, 0),
        ("u", B, 1.0, 2.0, WEEK),
        ("w", B, 1.0, 5.0, WEEK),
        ("w", B, 1.0, 99.0, 2 * WEEK),
    )
    result = builders.lifetime_value(rows, B, weeks=3, until=MONDAY + 2 * WEEK + DAY)
    assert result["within 1 week"] == pytest.approx(3.0)
    assert result["within 2 weeks"] == pytest.approx(4.0)
    assert np.isnan(result["within 3 weeks"])
    assert result.curve["at_risk"].tolist() == [3, 2, 0]
    assert result.n == 3
    # All users are observed: the mean, and its standard error as a share of it.
    early = builders.lifetime_value(rows, B, weeks=1, until=MONDAY + 2 * WEEK + DAY, level=0.5)
    error = np.std([1, 3, 5], ddof=1) / np.sqrt(3)
    factor = np.exp(error * 0.8164965809 / 3)  # Student's quantile of 0.75, 2 degrees
    assert early.params["low"].item() == pytest.approx(3 / factor)
    assert early.params["high"].item() == pytest.approx(3 * factor)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.0, 0.01, 1.0, 1e4]), min_size=2, max_size=8))
def test_lifetime_interval_is_positive(fees):
    rows = fills(*((f"u{n}", B, 1.0, fee, n) for n, fee in enumerate(fees)))
    result = builders.lifetime_value(rows, B, weeks=1, until=MONDAY + 2 * WEEK).params.iloc[0]
    if result["estimate"] == 0:
        assert result[["low", "high"]].isna().all()
    else:
        assert 0 <= result["low"] <= result["estimate"] <= result["high"]


def test_lifetime_interval_coverage():
    """Fifteen users bring 1 USD on average, from an exponential distribution."""
    hits, seeds, level = 0, 100, 0.9
    for seed in range(seeds):
        fees = np.random.default_rng(seed).exponential(1.0, 15)
        rows = fills(*((f"u{n}", B, 1.0, fee, n) for n, fee in enumerate(fees)))
        result = builders.lifetime_value(rows, B, weeks=1, until=MONDAY + 2 * WEEK, level=level)
        hits += result.params["low"].item() <= 1 <= result.params["high"].item()
    low, high = stats.binom.ppf([0.001, 0.999], seeds, level)
    assert low <= hits <= high, hits


def test_lifetime_interval_matches_bootstrap():
    rows = crowd(2)
    until = MONDAY + 5 * WEEK
    result = builders.lifetime_value(rows, B, weeks=4, until=until).params.iloc[3]
    mine = rows[rows["builder"] == B].assign(ms=lambda one: one["time"].astype("int64"))
    first = mine.groupby("user")["ms"].transform("min")
    week = ((mine["ms"] - first) // WEEK).rename("week")
    money = mine.groupby(["user", week])["builder_fee"].sum().unstack(fill_value=0.0)
    table = money.reindex(columns=range(4), fill_value=0.0).to_numpy()
    seen = ((until - first.groupby(mine["user"]).first()) // WEEK).to_numpy()[:, None] > np.arange(
        4
    )
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(1000):
        pick = rng.integers(0, len(table), len(table))
        drawn.append(((table * seen)[pick].sum(axis=0) / seen[pick].sum(axis=0)).sum())
    assert result["estimate"] == pytest.approx(
        ((table * seen).sum(axis=0) / seen.sum(axis=0)).sum()
    )
    wide = 2 * 1.96 * np.std(drawn)
    assert result["high"] - result["low"] == pytest.approx(wide, rel=0.15)


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


@pytest.mark.parametrize("engine", ENGINES)
def test_spans_count_each_coins_payment(engine):
    """One fill, and payments of BTC at hours 1 and 2 and of ETH at hour 1; one row is repeated."""
    ms = [MONDAY + HOUR, MONDAY + HOUR, MONDAY + 2 * HOUR, MONDAY + HOUR]
    paid = pd.DataFrame({"user": "a", "coin": ["BTC", "ETH", "BTC", "ETH"], "time": times(ms)})
    fill = pd.DataFrame({"user": "a", "time": times([MONDAY + HOUR]), "oid": [5]})
    give = Engine(engine).give
    result = builders.approval_spans(give(fill), funding=give(paid))
    assert result["seen"].tolist() == [4]
    unnamed = paid.drop(columns="coin")[:3]
    assert builders.approval_spans(fill, funding=unnamed)["seen"].tolist() == [4]


@pytest.mark.parametrize("engine", ENGINES)
def test_cohorts_leave_out_older_users(engine):
    """User a routes before `since`; b and d begin in its first week, c in the next one."""
    rows = fills(
        ("a", B, 1.0, 0.1, 0),
        ("a", B, 2.0, 0.2, WEEK + DAY),
        ("b", B, 3.0, 0.3, WEEK + 2 * DAY),
        ("c", B, 4.0, 0.4, 2 * WEEK),
        ("d", B, 6.0, 0.6, WEEK + DAY),
        ("b", B, 5.0, 0.5, 2 * WEEK + DAY),
    ).assign(tid=range(1, 7))
    given, since, until = Engine(engine).give(rows), MONDAY + WEEK, MONDAY + 3 * WEEK
    result = builders.cohorts(given, B, since=since, until=until)
    assert result["cohort"].tolist() == list(times(MONDAY + n * WEEK for n in (1, 1, 2)))
    assert result["users"].tolist() == [2, 2, 1]
    assert result["active"].tolist() == [2, 1, 1]
    assert result["volume"].tolist() == [900.0, 500.0, 400.0]
    assert result["earlier"].tolist() == [True, True, False]
    new = builders.activity(given, builder=B, since=since, until=until)["new"]
    assert result.drop_duplicates("cohort")["users"].tolist() == new.tolist() == [2, 1]


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


def test_simulated_revenue_sums_builder_fees(world, session):
    """The sums are in decimals, from the exchange's own fills, for every builder."""
    for builder in session.world["builders"]:
        rows = tk.builder_approved_fills_by_time(builder, 0, numbers="exact", session=session)
        revenue = builders.revenue(rows, builder)
        approved = set(zip(rows["user"], rows["tid"], rows["oid"], strict=True))
        whole = sum(
            (
                Decimal(fill.builder_fee)
                for user, fill in world.sources.fills
                if fill.builder == builder and (user, fill.tid, fill.oid) in approved
            ),
            Decimal(0),
        )
        assert whole > 0
        assert revenue["revenue"].item() == whole


def test_simulated_builder_fee_rates(session):
    """Each builder charges fixed basis points; amounts are rounded to a millionth."""
    for builder, bps in zip(session.world["builders"], FEES_BPS, strict=False):
        rows = tk.builder_approved_fills_by_time(builder, 0, session=session)
        assert builders.revenue(rows, builder)["fee_bps"].item() == pytest.approx(bps, abs=0.01)


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
            held = [
                (begin, end)
                for who, begin, end in truth[row.user]
                if who == builder and begin <= first and (end is None or last < end)
            ]
            later = [
                (begin, end)
                for who, begin, end in truth[row.user]
                if who == builder and begin <= last and (end is None or last < end)
            ]
            begins = [b for who, b, _ in truth[row.user] if who == builder and b <= first]
            assert begins
            assert later
            assert after is None or after < max(begins)
            assert before is None or (later[0][1] is not None and later[0][1] <= before)
            if held:
                assert held == later


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
    with pytest.raises(MissingColumns, match=r"fills: .* lacks the columns builder, builder_fee"):
        builders.revenue(fills(*SOME).drop(columns=["builder", "builder_fee"]))
    with pytest.raises(ValueError, match='weight must be "usd" or "fills"'):
        builders.attach_rate(fills(*SOME), B, weight="coins")
    with pytest.raises(ValueError, match="weeks must be at least 1"):
        builders.lifetime_value(fills(*SOME), B, weeks=0)
    with pytest.raises(ValueError, match="aggregated column"):
        builders.routing(fills(*SOME), B, by="routed")
