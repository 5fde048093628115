"""Section 13: fetch functions beyond the specification agree with the exchange's tables."""

import json
from collections import defaultdict
from decimal import Decimal

import httpx
import pandas as pd
import pytest
from msgspec import UNSET

import toolkit as tk
from toolkit.client import open_session
from toolkit.errors import HistoryWarning, IncompleteWarning
from toolkit.rules.directions import NOT_TRADED
from toolkit.times import DAY, HOUR


def rows_of(frame, *names):
    """Return the values of some columns, row by row; times in milliseconds."""
    columns = [
        frame[name].dt.as_unit("ms").astype("int64")
        if str(frame[name].dtype).startswith("datetime")
        else frame[name]
        for name in names
    ]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def session_of(answer, **options):
    """Return a session whose service answers with what a function makes of a request."""

    def respond(request):
        return httpx.Response(200, content=json.dumps(answer(json.loads(request.content))))

    transport = httpx.MockTransport(respond)
    options = options or {"api_key": "a-key"}
    return open_session("https://service.example", transport=transport, default=False, **options)


def test_twap_slices_are_fills_of_the_user(world, session):
    found = 0
    for user in world.summary()["users"]:
        mine = [fill for who, fill in world.sources.fills if who == user and fill.twap_id]
        frame = tk.user_twap_slice_fills(user, session=session)
        expected = [(fill.time, fill.tid, float(fill.px), fill.twap_id) for fill in mine]
        names = ("time", "tid", "px", "twap_id")
        assert sorted(rows_of(frame, *names)) == sorted(expected)
        assert frame["time"].is_monotonic_decreasing
        assert tk.provenance(frame)["complete"] == "yes"
        found += len(frame)
    assert found > 1_000


def test_twap_slices_are_read_flat_and_say_that_they_are_cut(session):
    user = session.world["users"][4]
    nested = tk.info({"type": "userTwapSliceFills", "user": user}, session=session)
    beside = [row | {"fill": row["fill"] | {"twapId": None}} for row in nested]
    flat = [row["fill"] for row in nested]
    answers = iter([nested, beside, flat, [nested[0]] * 1_999, *[[flat[1]] * 2_000] * 2])
    live = session_of(lambda _: next(answers))
    frames = [tk.user_twap_slice_fills(user, session=live) for _ in range(4)]
    assert frames[0]["twap_id"].notna().all()
    pd.testing.assert_frame_equal(frames[1], frames[0])
    pd.testing.assert_frame_equal(frames[2], frames[0])
    assert tk.provenance(frames[3])["complete"] == "yes"
    with pytest.warns(HistoryWarning, match="2,000"):
        cut = tk.user_twap_slice_fills(user, session=live)
    assert (len(cut), tk.provenance(cut)["complete"]) == (2_000, "no")
    with pytest.warns(IncompleteWarning, match="2,000"):
        (page,) = tk.pages(tk.user_twap_slice_fills, user, session=live)
    assert tk.provenance(page)["complete"] == "no"


def test_funding_rates_are_read_page_by_page(world, session):
    coin, start = "ETH", world.sources.now_ms - 2 * DAY + 1
    rates = [rate for rate in world.sources.funding_rates[coin] if rate.time >= start]
    assert (len(rates), len({rate.premium for rate in rates}) > 40) == (48, True)
    frame = tk.funding_history("eth", start, session=session)
    expected = [(rate.time, float(rate.funding_rate), float(rate.premium)) for rate in rates]
    assert rows_of(frame, "time", "funding_rate", "premium") == expected

    rate = {"coin": coin, "fundingRate": "0.1", "premium": "0"}
    hours = [rate | {"time": at * HOUR} for at in range(1, 1_102)]
    live = session_of(lambda body: [r for r in hours if r["time"] >= body["startTime"]][:500])
    paged = tk.funding_history(coin, 0, session=live)
    assert rows_of(paged, "time") == [(hour["time"],) for hour in hours]
    facts = tk.provenance(paged)
    assert (facts["complete"], facts["points"]) == ("yes", 5 * facts["requests"])


def test_builder_fills_are_routed_through_the_builder(world, session):
    found = []
    for builder in world.summary()["builders"]:
        mine = [(user, fill) for user, fill in world.sources.fills if fill.builder == builder]
        start = mine[len(mine) // 3][1].time  # rows before it are left out
        mine = [(user, fill) for user, fill in mine if fill.time >= start]
        frame = tk.builder_fills_by_time(builder, start, page_size=50, session=session)
        expected = [
            (user, fill.tid, float(fill.sz), float(fill.builder_fee)) for user, fill in mine
        ]
        names = ("user", "tid", "sz", "builder_fee")
        assert sorted(rows_of(frame, *names)) == sorted(expected)
        assert frame["time"].is_monotonic_increasing
        facts = tk.provenance(frame)
        assert (facts["complete"], facts["points"]) == ("yes", 5 * facts["requests"])
        found.append(len(frame))
    assert len({*found}) == len(found) == 3
    approved = tk.builder_approved_fills_by_time(builder, start, session=session)
    assert len(approved) > found[-1]


def test_liquidations_are_those_of_their_own_account(world, session):
    def is_own(user, fill):
        named = fill.liquidation.liquidated_user
        return named == user or (named is UNSET and fill.crossed)

    fills = [(user, fill) for user, fill in world.sources.fills if fill.liquidation is not UNSET]
    own = [(fill.time, user, fill.tid, fill.coin) for user, fill in fills if is_own(user, fill)]
    assert len({tid for *_, tid, _ in own}) == len(own) == 58 < len(fills)
    names = ("time", "user", "tid", "coin")
    every = tk.liquidation_history_by_time(session=session)
    assert sorted(rows_of(every, *names)) == sorted(own)
    assert every["time"].is_monotonic_decreasing
    assert every["liquidated_user"].fillna(every["user"]).equals(every["user"])
    second = sorted({time for time, *_, coin in own if coin == "XRP"})[1]
    part = tk.liquidation_history_by_time(second, coin="xrp", page_size=5, session=session)
    wanted = [row for row in own if row[0] >= second and row[3] == "XRP"]
    assert sorted(rows_of(part, *names)) == sorted(wanted)
    assert 5 < len(part) < (every["coin"] == "XRP").sum() < len(every)
    assert tk.provenance(part)["pages"] > 1


@pytest.mark.parametrize(("interval", "length"), [("15s", 15_000), ("1h", HOUR)])
def test_candles_are_counted_from_trades(world, session, interval, length):
    start = world.sources.now_ms - DAY + 17 * 60_000 + 1  # within a candle
    end = start + 9 * HOUR + 100
    trades = defaultdict(list)
    for _, fill in world.sources.fills:
        if fill.coin == "ETH" and fill.crossed and fill.dir not in NOT_TRADED:
            trades[fill.time // length * length].append((float(fill.px), float(fill.sz)))
    expected = []
    for begin, inside in sorted(trades.items()):
        if begin + length > start and begin <= end:
            prices, sizes = zip(*inside, strict=True)
            ends = prices[0], prices[-1], max(prices), min(prices)
            expected.append((begin, *ends, pytest.approx(sum(sizes)), len(prices)))
    frame = tk.candles("eth", interval, start, end, session=session)
    names = ("start_time", "open", "close", "high", "low", "volume", "trades")
    assert rows_of(frame, *names) == expected
    assert len({row[1:5] for row in rows_of(frame, *names)}) > 5
    assert (frame["end_time"] - frame["start_time"]).unique().tolist() == [
        pd.Timedelta(length - 1, "ms")
    ]


def minute_candles(count, most=None):
    """Return how a service answers that has `count` candles up to minute 30 million."""
    last, asked = 30_000_000, []
    row = {"s": "BTC", "i": "1m", "o": "1", "c": "2", "h": "3", "l": "0.5", "v": "9", "n": 4}

    def answer(body):
        req = body["req"]
        asked.append(req)
        first = max(last - (most or count) + 1, last - count + 1, -(-req["startTime"] // 60_000))
        at = range(first, min(last, req["endTime"] // 60_000) + 1)
        return [row | {"t": number * 60_000, "T": number * 60_000 + 59_999} for number in at]

    return answer, asked, last * 60_000 + 30_000


def test_candles_are_read_in_windows():
    answer, asked, now_ms = minute_candles(12_345)
    live = session_of(answer, api_key="a-key", now_ms=lambda: now_ms)
    start = now_ms - 12_000 * 60_000  # in the middle of a minute
    frame = tk.candles("BTC", "1m", start, session=live)
    assert len(frame) == 12_000
    assert frame["start_time"].diff().dropna().eq(pd.Timedelta("1min")).all()
    facts = tk.provenance(frame)
    assert (facts["complete"], facts["pages"]) == ("yes", len(asked))
    assert all(req["endTime"] - req["startTime"] < 5_000 * 60_000 for req in asked)
    plan = tk.plan(tk.candles, "BTC", "1m", start, session=live)
    assert (plan.requests, plan.sure) == (len(asked), "exact")
    few = tk.candles("BTC", "1m", start, max_rows=5_001, session=live)
    assert rows_of(few, "start_time") == rows_of(frame, "start_time")[:5_001]
    with pytest.warns(HistoryWarning, match="begin at"):  # half of the range has no candle
        tk.candles("BTC", "1m", now_ms - 24_000 * 60_000, session=live)


def test_exchange_keeps_newest_candles_only():
    answer, asked, now_ms = minute_candles(12_345, most=5_000)
    live = session_of(answer, api="hyperliquid", now_ms=lambda: now_ms, sleep=lambda _: None)
    with pytest.raises(tk.Incomplete) as missing:
        tk.candles("BTC", "1m", now_ms - 9_000 * 60_000, now_ms - 60_000, session=live)
    rows = missing.value.rows
    assert (len(rows), tk.provenance(rows)["complete"]) == (4_999, "no")
    assert tk.provenance(rows)["why"].count(rows["start_time"][0].strftime("%Y-%m-%dT%H:%M"))
    whole = tk.candles("BTC", "1m", rows["start_time"][0], session=live)
    assert (len(whole), tk.provenance(whole)["complete"]) == (5_000, "yes")
    assert len(asked) == tk.plan(tk.candles, "BTC", "1m", 0, session=live).requests * 2 == 2
    assert tk.provenance(tk.candles("BTC", "1d", 0, session=live))["complete"] == "yes"


def test_exchange_keeps_intervals_without_trades_too():
    with tk.local(seed=7, size="tiny", like="exchange", default=False) as exchange:
        with pytest.raises(tk.Incomplete) as missing:
            tk.candles("DOGE", "15s", "2025-09-28", session=exchange)
        assert 0 < len(missing.value.rows) < 5_000
        begin = exchange.now_ms() // 15_000 * 15_000 - 4_999 * 15_000
        whole = tk.candles("DOGE", "15s", begin, session=exchange)
    assert rows_of(whole, "start_time") == rows_of(missing.value.rows, "start_time")


def test_open_interest_adds_all_positions_up(world, session):
    """After each hour, it is the sum of the positions that the fills left, as the last state is."""
    for coin in ("BTC", "eqx:GOLD"):
        held, last, after = defaultdict(float), {}, {}
        for user, fill in world.sources.fills:
            if fill.coin == coin:
                if fill.dir not in NOT_TRADED:
                    last[fill.time // HOUR] = float(fill.px)
                change = float(fill.sz) * (1 if fill.side == "B" else -1)
                held[user] = float(fill.start_position) + change
                after[fill.time // HOUR] = sum(map(abs, held.values()))
        frame = tk.open_interest_history(0, coin=coin, session=session)
        rows = rows_of(frame, "time", "oi_open", "oi_high", "oi_low", "oi_close", "oi_usd")
        begin, present = min(after), world.sources.now_ms
        assert [row[0] for row in rows] == [*range(begin * HOUR, present + 1, HOUR)]
        level = price = 0.0
        for time, opened, high, low, close, usd in rows:
            assert opened == pytest.approx(level, abs=1e-9)
            level, price = after.get(time // HOUR, level), last.get(time // HOUR, price)
            assert (close, usd) == (pytest.approx(level), pytest.approx(level * price))
            assert low <= min(opened, close) <= max(opened, close) <= high
        states = [
            abs(float(held.position.szi))
            for state in world.sources.states[coin.rpartition(":")[0]].values()
            for held in state.asset_positions
            if held.position.coin == coin
        ]
        assert rows[-1][4] == pytest.approx(sum(states))
        assert len({row[4] for row in rows}) > 10


def test_open_interest_needs_coin_or_sector(session):
    for named in ({}, {"coin": "BTC", "sector": "ai"}, {"coin": "BTC", "interval": "1s"}):
        with pytest.raises(tk.BadRequest):
            tk.open_interest_history("1d", session=session, **named)
    now_ms, rows = 1_760_000_000_000, [{"t": 1_759_968_000_000, "oiUsd": 12.5, "x": None}]
    live = session_of(lambda _: rows, api_key="a-key", now_ms=lambda: now_ms)
    with pytest.warns(UserWarning, match="x"):
        frame = tk.open_interest_history("12h", sector="ai", interval="1d", session=live)
    assert rows_of(frame, "time", "oi_usd") == [(1_759_968_000_000, 12.5)]
    assert frame["oi_close"].isna().all()


def test_interest_is_that_of_loans_and_deposits(world, session):
    totals = []
    for user, state in world.sources.borrow_lend.items():
        rows = tk.user_borrow_lend_interest(user, numbers="exact", session=session)
        sums = rows.groupby("token")[["borrow", "supply"]].sum()
        for index, token in state.token_to_state:
            name = {0: "USDC", 150: "HYPE"}[index]
            for side, held in (("borrow", token.borrow), ("supply", token.supply)):
                interest = Decimal(held.value) - Decimal(held.basis)
                assert (sums[side][name] if name in sums.index else 0) == interest
                totals.append((name, side, interest))
        if len(rows):
            assert len(rows["borrow"].unique()) > 3
            middle = rows["time"][len(rows) // 2]
            part = tk.user_borrow_lend_interest(user, middle, session=session)
            assert len(part) == (rows["time"] >= middle).sum() < len(rows)
    assert {(name, side) for name, side, interest in totals if interest} == {
        ("USDC", "supply"),
        ("HYPE", "borrow"),
    }


def test_archive_returns_what_was_fetched(session, tmp_path):
    start, examples = session.world["start_ms"], session.world["examples"]
    calls = [
        (tk.funding_history, ["BTC"], {}),
        (tk.builder_fills_by_time, [examples["BUILDER"]], {}),
        (tk.user_borrow_lend_interest, [examples["BORROWER"]], {}),
        (tk.candles, ["BTC", "1h"], {}),
        (tk.liquidation_history_by_time, [], {"coin": "SUI"}),
        (tk.open_interest_history, [], {"coin": "BTC", "interval": "4h"}),
    ]
    archive = tk.archive.open(tmp_path)
    for fetch, subject, named in calls:
        for _ in range(2):  # the second refresh appends nothing
            archive.refresh(fetch, *subject, **named, start=start, session=session)
        fetched = fetch(*subject, start=start, **named, session=session)
        archived = archive.frame(fetch, *subject, start=start, **named)
        assert len(fetched) > 10
        pd.testing.assert_frame_equal(archived, fetched)
    assert archive.verify() == []
    tables = {*archive.tables.table_names()} - {"pulls", "answers"}
    assert tables == {"fills", "funding_rate", "lend_interest"}
