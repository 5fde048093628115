"""Spreads from the tape alone: estimates recover the truth for any correlation of signs."""

import numpy as np
import pandas as pd
import pytest
from scipy import signal, stats

import toolkit as tk
from toolkit.execution import fill_quality, markout, quotes, spreads
from toolkit.execution._quotes import estimate_parts, price_changes, read_tape
from toolkit.prepare.door import Table

from .examples import MONDAY, times


def read_trades(fills, what="fills"):
    trades, names = read_tape(Table(fills, what, "fills"))
    return trades.assign(coin=np.array(names)[trades["coin"]])


TRANSITORY, PERMANENT = 0.7, 0.3  # bps: half a spread of 1
TRUTH = [1.0, TRANSITORY, PERMANENT]


def tape(seed, correlation, n=1200, coin="XYZ"):
    """Draw trades with correlated signs, one every five seconds on average.

    The mid moves by `PERMANENT` with each trade, and by news. The trade is `TRANSITORY` away from
    the mid after it, so it pays the sum of both against the mid before it.
    """
    rng = np.random.default_rng(seed)
    stays = rng.random(n) >= (1 - correlation) / 2
    sign = np.cumprod(np.where(stays, 1.0, -1.0))
    gap = rng.exponential(5.0, n)
    news = 0.8 * np.sqrt(gap / 5.0) * rng.standard_normal(n)
    mid = np.cumsum(PERMANENT * sign + news)
    return pd.DataFrame(
        {
            "coin": coin,
            "time": times((MONDAY + np.cumsum(np.ceil(1000 * gap))).astype("int64")),
            "px": 100.0 * np.exp((mid + TRANSITORY * sign) / 1e4),
            "sz": 1.0,
            "side": np.where(sign > 0, "B", "A"),
            "crossed": True,
            "mid_before": 100.0 * np.exp((mid - PERMANENT * sign - news) / 1e4),
        }
    )


def drawn(rng, correlation, n, persistence=0.0):
    """Draw the price changes of a tape as `tape` does; news may be autocorrelated."""
    sign = np.cumprod(np.where(rng.random(n) >= (1 - correlation) / 2, 1.0, -1.0))
    gap = rng.exponential(5.0, n)
    news = 0.8 * np.sqrt(gap / 5.0) * rng.standard_normal(n)
    if persistence:
        news = signal.lfilter([1.0], [1.0, -persistence], news)
    price = np.cumsum(PERMANENT * sign + news) + TRANSITORY * sign
    columns = {"sign": sign[1:], "before": sign[:-1], "gap": gap[1:], "change": np.diff(price)}
    return pd.DataFrame(columns)


def held(found, level):
    """Return the share of intervals that contain the truth, for each of the three parts."""
    values, variances, freedom = np.moveaxis(np.array(found), 1, 0)
    reach = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(variances)
    return (np.abs(values - TRUTH) <= reach).mean(axis=0)


@pytest.mark.parametrize(("correlation", "n"), [(0.0, 300), (0.95, 300), (0.8, 3000)])
def test_interval_coverage(correlation, n):
    """Intervals of 95 % contain the truth for 92 to 98 % of 300 tapes: the binomial error is 1.3 %.

    At a correlation of 0.95 only seven of 300 trades change sides. Too wide is wrong as well.
    """
    rng = np.random.default_rng([n, int(100 * correlation)])
    every = [estimate_parts(drawn(rng, correlation, n))[0] for _ in range(300)]
    found = [parts for parts in every if not np.isnan(parts[0]).any()]
    assert len(found) >= 0.98 * 300
    shares = held(found, 0.95)
    assert shares.min() >= 0.92
    assert shares.max() <= 0.98
    errors = np.array(found)[:, 0] - TRUTH
    t = errors.mean(axis=0) / (errors.std(axis=0) / np.sqrt(len(found)))
    assert np.abs(t).max() < 3.5


def test_interval_coverage_with_lasting_news():
    """News with autocorrelation 0.6: without lags the permanent part has a coverage of 74 %."""
    rng = np.random.default_rng(5)
    found = [estimate_parts(drawn(rng, 0.8, 3000, persistence=0.6))[0] for _ in range(300)]
    assert held(found, 0.95).min() >= 0.9
    assert held(found, 0.95).max() <= 0.98


def test_variance_equals_full_matrices():
    """The definition with matrices of n rows and n columns gives the same variance.

    Residuals are e = M x, the variance x'Ax with A = M D K D M. If x has the variance of the model,
    its mean is tr(A V) and its variance 2 tr(A V A V).
    """
    changes = price_changes(read_trades(tape(14, 0.5, 60), "tape"), 60_000)
    n = len(changes)
    gap = changes["gap"].to_numpy()
    known = np.column_stack([np.ones(n), changes["sign"], -changes["before"]])
    model = np.diag(gap + np.median(gap))
    solve = np.linalg.inv(known.T @ np.linalg.inv(model) @ known) @ known.T @ np.linalg.inv(model)
    left = np.eye(n) - known @ solve
    change = changes["change"].to_numpy()
    lags = 3  # 4 * (60 / 100)^(2/9), rounded down
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    kernel = np.maximum(1 - apart / (lags + 1), 0)
    found, _ = estimate_parts(changes)
    for part, pull in enumerate([solve[1], solve[2], solve[1] - solve[2]]):
        shaped = np.diag(pull / np.sqrt(np.diag(left)))
        form = left.T @ shaped @ kernel @ shaped @ left @ model
        mean, spread = np.trace(form), np.trace(form @ form)
        raw = change @ left.T @ shaped @ kernel @ shaped @ left @ change
        variance = raw * (pull @ model @ pull) / mean
        assert found[:, part] == pytest.approx([pull @ change, variance, mean**2 / spread])


def test_single_turn_has_no_interval():
    """One buy among sells: the two turns alone determine the spread, so its error is not known."""
    sign = np.array([-1.0] * 5 + [1.0] + [-1.0] * 5)
    change = np.array([0.1, -0.2, 0.3, -0.1, 2.0, -2.2, 0.1, 0.2, -0.1, 0.0])
    changes = pd.DataFrame({"sign": sign[1:], "before": sign[:-1], "gap": 1.0, "change": change})
    found, _ = estimate_parts(changes)
    # Constant c, half spread h, transitory t: c + h + t = 2, c - h - t = -2.2, so c = -0.1 and
    # h + t = 2.1. The other eight have the mean c - h + t = 0.0375, so h - t = -0.1375.
    assert found[0].tolist() == pytest.approx([0.98125, 1.11875, -0.1375])
    assert np.isnan(found[1:]).all()


def test_trade_prices_as_quotes_are_refused():
    """At a correlation of 0.8 the last trade would show 1 - 0.8 of the half spread."""
    trades = tape(1, 0.8, 500)
    renamed = trades.rename(columns={"px": "mid_px"})[["coin", "time", "mid_px"]]
    for prices in (trades, trades[["coin", "time", "px"]], renamed):
        for helper in (fill_quality, markout, spreads):
            with pytest.raises(ValueError, match="quotes"):
                helper(trades, prices)
    with pytest.raises(ValueError, match="column px"):
        fill_quality(trades, trades.assign(mid_px=1.0), price="px")
    mids = trades[["coin", "time"]].assign(mid_px=trades["mid_before"]).head(50)
    assert fill_quality(trades.head(50), mids, by=None)["priced"].item() > 40


@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_quotes_recover_mid(correlation):
    """Fills cost the same against estimated quotes as against the true mids."""
    trades = tape(3, correlation, 6000)
    result = quotes(trades)
    # The quotes of a moment apply until the next trade, before news arrives.
    true = trades["mid_before"].to_numpy()[1:]
    assert abs(np.log(result["mid_px"].to_numpy()[:-1] / true).mean()) < 0.1e-4
    half = 1e4 * np.log(result[["bid_px", "ask_px"]].div(result["mid_px"], axis=0))
    assert half.mean().tolist() == pytest.approx([-1.0, 1.0], abs=0.1)
    for prices in (None, result):
        row = fill_quality(trades, prices, by=None).iloc[0]
        assert row["improvement_bps"] == pytest.approx(-1.0, abs=0.1)
        assert row["covered"] > 0.99
    found = spreads(trades, result, "1s", max_age="60s", by=None)
    assert found["effective"] == pytest.approx(found["realised"] + found["impact"])


ONE_DAY = 24 * 3_600_000
HORIZON = 1.2  # times the mean time between trades


def many_tapes(correlation, n, tapes):
    """Draw tapes of a day as `tape` does, each for a coin of its own."""
    rng = np.random.default_rng([n, int(100 * correlation)])
    sign = np.cumprod(np.where(rng.random((tapes, n)) >= (1 - correlation) / 2, 1.0, -1.0), axis=1)
    gap = rng.exponential(1.0, (tapes, n))
    news = 0.8 * np.sqrt(gap) * rng.standard_normal((tapes, n))
    price = np.cumsum(PERMANENT * sign + news, axis=1) + TRANSITORY * sign
    ms = np.cumsum(np.ceil(gap * ONE_DAY / n), axis=1)
    return pd.DataFrame(
        {
            "coin": np.repeat([f"C{number}" for number in range(tapes)], n),
            "time": times((MONDAY + ms.ravel()).astype("int64")),
            "px": 100.0 * np.exp(price.ravel() / 1e4),
            "sz": 1.0,
            "side": np.where(sign.ravel() > 0, "B", "A"),
            "crossed": True,
        }
    )


def true_parts(correlation):
    """Return effective and realised spread, and impact, until `HORIZON` after a trade.

    The number k of trades in this time has a Poisson distribution. The mid moves by `PERMANENT`
    times the sum of correlation^j for j up to k.
    """
    power = np.exp(HORIZON * (correlation - 1))
    drift = PERMANENT * correlation / (1 - correlation) * (1 - power)
    return [1.0, TRANSITORY - drift, PERMANENT + drift]


def test_interval_coverage_with_estimated_quotes():
    """Intervals of 95 % contain the truth for 92 to 98 % of 300 tapes, as those of the tape do.

    The binomial error is 1.3 %. Without the error of the quotes the coverage of the effective
    spread is 68 % at a correlation of 0.95.
    """
    correlation, n = 0.95, 500
    trades = many_tapes(correlation, n, 300)
    prices = quotes(trades, max_age="3h")
    horizon = HORIZON * ONE_DAY / n / 1000
    options = {"max_age": "3h", "by": "coin", "cluster": "hour", "draws": 199}
    found = spreads(trades, prices, horizon, **options).params.dropna(subset="low")
    truth = true_parts(correlation)
    assert found["coin"].nunique() > 0.98 * 300
    for name, value in zip(["effective", "realised", "impact"], truth, strict=True):
        rows = found[found["name"] == name]
        share = ((rows["low"] <= value) & (value <= rows["high"])).mean()
        assert 0.92 <= share <= 0.98, name
    marks = markout(trades, prices, [horizon], **options).params.dropna(subset="low")
    share = ((marks["low"] <= -truth[1]) & (-truth[1] <= marks["high"])).mean()
    assert 0.92 <= share <= 0.98


def test_quotes_by_hand():
    """The quotes are the last taker buy and sell, with their ages and the mid.

    Alternating buys at 100.01 and sells at 99.99: a half spread of 1 bps without a permanent part.
    """
    signs = [1, 1, -1, -1, 1, -1, 1]
    trades = pd.DataFrame(
        {
            "coin": "XYZ",
            "time": times(MONDAY + 1000 * np.arange(len(signs))),
            "px": [100 * np.exp(sign / 1e4) for sign in signs],
            "sz": 2.0,
            "side": ["B" if sign > 0 else "A" for sign in signs],
            "crossed": True,
        }
    )
    result = quotes(trades)
    assert result["mid_px"].tolist() == pytest.approx([100.0] * 7)
    assert result["sell_px"].isna().tolist() == [True, True, *[False] * 5]
    assert result["sell_age_seconds"].tolist()[2:] == [0, 0, 1, 0, 1]
    assert result["buy_age_seconds"].tolist() == [0, 0, 1, 2, 0, 1, 0]
    row = result.iloc[5]
    assert row["buy_px"] == pytest.approx(100 * np.exp(1e-4))
    assert row["bid_px"] == pytest.approx(row["sell_px"])
    # The makers' fills of the same trades name the same takers.
    other = trades["side"].map({"A": "B", "B": "A"})
    makers = trades.assign(side=other, crossed=False)
    pd.testing.assert_frame_equal(quotes(makers), result)
    pd.testing.assert_frame_equal(quotes(pd.concat([trades, makers])), result)


def test_spreads_ignore_maker_fills():
    """Each coin has its three figures once, whether the tape has the makers' fills or not."""
    one, other = tape(4, 0.5, 300), tape(5, 0.2, 200, "ABC").assign(sz=2.0)
    trades = pd.concat([one, other])
    makers = trades.assign(side=trades["side"].map({"A": "B", "B": "A"}), crossed=False)
    found = spreads(pd.concat([trades, makers]), by="coin", max_age=20, level=0.9)
    rows = found.params
    assert rows["name"].tolist() == ["effective", "realised", "impact"] * 2
    assert (rows["clusters"] == 0).all()
    assert rows["usd"].isna().all()
    changes = price_changes(read_trades(trades, "fills"), 20_000)
    for coin, own in rows.groupby("coin"):
        mine = changes[changes["coin"] == coin]
        values, variances, freedom = estimate_parts(mine)[0]
        assert own["estimate"].tolist() == pytest.approx(list(values))
        assert own["estimate"].iloc[0] == pytest.approx(own["estimate"].iloc[1:].sum())
        reach = stats.t.ppf(0.95, freedom) * np.sqrt(variances)
        assert own["low"].tolist() == pytest.approx(list(values - reach))
        assert own["high"].tolist() == pytest.approx(list(values + reach))
        count = 300 if coin == "XYZ" else 200
        assert set(own["n"]) == {len(mine)}
        assert set(own["missing"]) == {count - len(mine)}
        assert own["age_seconds"].tolist() == pytest.approx([mine["gap"].mean()] * 3)
        row = found.coins.set_index("coin").loc[coin]
        usd = (one if coin == "XYZ" else other).eval("px * sz").sum()
        assert row["volume_usd"] == pytest.approx(usd)
        assert (row["trades"], row["changes"]) == (count, len(mine))
        assert row["turns"] == (mine["sign"] != mine["before"]).sum()
        assert row["sign_autocorrelation"] == pytest.approx((mine["sign"] * mine["before"]).mean())
        names = ["half_spread", "transitory", "permanent"]
        assert row[names].tolist() == pytest.approx(list(values))
    both = spreads(
        pd.concat([trades, makers]), by=["liquidity", "coin"], max_age=20, level=0.9
    ).params
    assert both["liquidity"].tolist() == ["maker"] * 6 + ["taker"] * 6
    pd.testing.assert_frame_equal(both.iloc[6:, 1:].reset_index(drop=True), rows)
    assert both["estimate"].tolist()[:6] == (-rows["estimate"]).tolist()
    assert both["low"].tolist()[:6] == (-rows["high"]).tolist()
    assert both["high"].tolist()[:6] == (-rows["low"]).tolist()
    assert (found.price_source, found.cluster, found.n) == ("trades", "none", 500)
    assert np.isnan(found.seconds)
    facts = rows.attrs["toolkit"]
    assert (facts["by"], facts["price_source"]) == (["coin"], "trades")


def test_coins_weighted_by_volume():
    """XYZ costs 1 bps and has 3 times the volume of ABC, which costs 2 bps."""
    one, other = tape(5, 0.5), tape(6, 0.5, coin="ABC")
    other = other.assign(px=100 * (other["px"] / 100) ** 2, sz=1 / 3)
    found = spreads(pd.concat([one, other]), by=None)
    by_coin = spreads(pd.concat([one, other]), by="coin").params
    effective = by_coin[by_coin["name"] == "effective"].set_index("coin")["estimate"]
    assert found["effective"] == pytest.approx(
        (effective["XYZ"] * 3 + effective["ABC"]) / 4, rel=1e-3
    )
    assert effective["ABC"] == pytest.approx(2, abs=0.3)
    assert found.coins["coin"].tolist() == ["ABC", "XYZ"]
    assert found.coins["sign_autocorrelation"].between(0.4, 0.6).all()


def test_deep_orders_count_at_best_price():
    """A third of the orders fills up to five levels of 2 bps, with the figures of the best price.

    The rows are in any order. The order's average price would show a spread that is too wide.
    """
    rng = np.random.default_rng(13)
    touch = tape(13, 0.8, 1500)
    levels = np.where(rng.random(1500) < 1 / 3, rng.integers(2, 6, 1500), 1)
    which = np.repeat(np.arange(1500), levels)
    deep = np.concatenate([np.arange(n) for n in levels])
    sign = np.where(touch["side"] == "B", 1.0, -1.0)[which]
    walked = touch.iloc[which].assign(oid=which, tid=np.arange(len(which)))
    walked["px"] *= np.exp(2e-4 * sign * deep)
    shuffled = walked.sample(frac=1.0, random_state=1, ignore_index=True)
    found, best = (spreads(rows).params.drop(columns="usd") for rows in (shuffled, touch))
    pd.testing.assert_frame_equal(found, best)
    average = walked.groupby("oid")["px"].mean()
    assert spreads(touch.assign(px=average))["effective"] > best["high"].iloc[0]


def test_transaction_with_both_sides_is_unsure():
    rows = tape(8, 0.0, 5)
    rows["time"] = rows["time"].iloc[[0, 1, 1, 3, 4]].to_numpy()
    rows["side"] = list("BBABA")
    trades = read_trades(rows, "fills")
    assert trades["sure"].tolist() == [True, False, False, True, True]
    assert len(price_changes(trades, 1e9)) == 1


def test_fills_without_quote_are_excluded():
    """These are settlements, conversions, backstop liquidations and deleveraging.

    Liquidations on the book are included (docs/live_service.md, sections 2 and 7).
    """
    rows = tape(9, 0.0, 8)
    rows["dir"] = ["Open Long", "Settlement", "Split Outcome", "Liquidated Cross Long",
                   "Auto-Deleveraging", "Close Long", "Open Short", "Buy"]  # fmt: skip
    rows["liquidation_method"] = [None, None, None, None, None, "market", "backstop", None]
    kept = read_trades(rows, "fills")["px"].tolist()
    assert kept == rows["px"].iloc[[0, 5, 7]].tolist()
    assert fill_quality(rows, by=None)["fills"].item() == 3


def test_quiet_tape_keeps_its_mid():
    """Without a later trade, the mid after the fill's own trade holds until the horizon.

    Buys at 100.03 and 100.04, then sells at 100.00 and 99.99, ten times: each trade moves the mid
    by 1 bp and pays 2 bps more. A buy in front sees the mid rise by its own bp and the next one's.
    """
    n = np.arange(40)
    rows = pd.DataFrame(
        {"coin": "XYZ", "side": np.where(n % 4 < 2, "B", "A"), "crossed": True, "sz": 1.0,
         "px": np.tile([100.03, 100.04, 99.99, 99.98], 10),
         "time": times(MONDAY + 50_000 * (n // 2) + 5_000 * (n % 2))}
    )  # fmt: skip
    found = markout(rows, None, ["10s"], by=None).params.iloc[0]
    assert (found["n"], found["missing"]) == (40, 0)
    assert found["estimate"] == pytest.approx(-1.5, abs=0.01)  # -1 and -2 in turn
    # Mids at the times of the trades are the mids after them.
    mids = quotes(rows)[["coin", "time", "mid_px"]]
    again = markout(rows, mids, ["10s"], by=None).params.iloc[0]
    assert (again["n"], again["estimate"]) == (40, pytest.approx(found["estimate"]))


def walk(seed, gap, follow, n=4000):
    """Each trade moves the mid by 1.5 bps to its side and is paid 4 bps from the mid before it.

    A trade has the side of the one before it with probability (1 + `follow`) / 2.
    """
    rng = np.random.default_rng([seed, gap])
    sign = np.cumprod(np.where(rng.random(n) < (1 + follow) / 2, 1.0, -1.0))
    mid = np.cumsum(1.5 * sign + rng.normal(0.0, 1.0, n))
    at = MONDAY + np.cumsum(1 + rng.exponential(1000 * gap, n).astype("int64"))
    return pd.DataFrame(
        {"coin": "XYZ", "time": times(at), "sz": 1.0, "crossed": True,
         "side": np.where(sign > 0, "B", "A"), "px": 100 * np.exp((mid + 2.5 * sign) / 1e4),
         "mid_px": 100 * np.exp(mid / 1e4)}
    )  # fmt: skip


def true_markout(gap, follow, seconds):
    """Return 1.5 - 4, and what later trades add: follow^k times the probability of a k-th one."""
    power = np.arange(1, 400)
    return -2.5 + 1.5 * (follow**power * stats.poisson.sf(power - 1, seconds / gap)).sum()


@pytest.mark.parametrize(
    ("gap", "follow", "seconds"),
    [(2, 0.3, 10), (10, 0.3, 10), (30, 0.3, 10), (120, 0.3, 10), (120, 0.8, 300)],
)
def test_quiet_markets_are_not_selected(gap, follow, seconds):
    """A fill counts whether another trade follows or not: 18 of 20 intervals hold the truth."""
    truth, held = true_markout(gap, follow, seconds), []
    for seed in range(20):
        rows = walk(seed, gap, follow)
        prices = None if seed % 2 else rows[["coin", "time", "mid_px"]]
        if prices is not None and seconds > 60:  # mids that are known to hold
            prices = prices.assign(bid_px=rows["mid_px"], ask_px=rows["mid_px"])
        options = {"by": None, "cluster": "hour", "draws": 199}
        found = markout(rows, prices, [seconds], **options).params.iloc[0]
        assert found["n"] >= 3990
        held.append(found["low"] <= truth <= found["high"])
    assert sum(held) >= 18


def test_estimated_quotes_do_not_cross():
    """Takers buy below the price at which takers sell: this shows no spread."""
    rows = tape(12, 0.0, 200).assign(px=lambda rows: 200 - rows["px"])
    found = quotes(rows)
    assert (found["bid_px"] <= found["ask_px"]).all()
    assert spreads(rows)["effective"] < 0


def test_one_sided_tape_warns():
    rows = tape(10, 0.0, 60).assign(side="B")
    with pytest.warns(UserWarning, match="60 trades"):
        found = spreads(rows).params
    assert found[["estimate", "low", "high"]].isna().all().all()
    assert quotes(rows)["mid_px"].isna().all()
    assert quotes(rows)["buy_px"].notna().all()
    assert fill_quality(rows, by=None)["priced"].item() == 0


def test_spreads_of_tape_by_dex_and_day():
    rows = tape(11, 0.0, 300).assign(user="0xa")
    by_day = spreads(rows, by=["dex", "day"]).params
    assert by_day["dex"].unique().tolist() == ["hyperliquid"]
    assert str(by_day["day"].dtype).startswith("datetime64")
    with pytest.raises(ValueError, match="user"):
        spreads(rows, by="user")


def test_intervals_contain_simulated_books():
    """Slippage samples contain each book's half spread and do not depend on the tape.

    Five intervals of 99 %: any of them misses in at most one of 20 worlds (Bonferroni).
    """
    session = tk.local(seed=7, size="tiny", default=False)
    coins = ["BTC", "ETH", "SOL", "HYPE", "LINK"]
    fills = tk.many(tk.user_fills_by_time, session.world["users"], "30d", session=session)
    books = tk.many(tk.slippage_history, coins, 1e3, "30d", page_size=2000, session=session)
    half = books.groupby("coin")["half_spread_bps"].mean()
    traded = fills[fills["coin"].isin(coins)]
    found = spreads(traded, by="coin", max_age="10m", level=0.99).params
    rows = found[found["name"] == "effective"].set_index("coin")
    assert (rows["low"] < half[rows.index]).all()
    assert (half[rows.index] < rows["high"]).all()
