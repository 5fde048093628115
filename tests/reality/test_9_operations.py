"""Section 9: each operation beyond the specification agrees with the exchange's tables."""

import itertools
import json
from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

import toolkit as tk
from toolkit.contract.answers import encode
from toolkit.contract.operations import EXTRA_OPERATIONS
from toolkit.rules.directions import NOT_TRADED
from toolkit.service.open_orders import OPEN_STATES
from toolkit.simulation.markets import COLLATERAL
from toolkit.times import DAY, HOUR

NOBODY = "0x" + "9" * 40


@pytest.fixture
def ask(session):
    def ask(type, **fields):
        return tk.info({"type": type, **fields}, session=session)

    return ask


def plain(value):
    """Return a table in the form of JSON."""
    return json.loads(encode(value))


def users(world):
    return [*world.expected, *world.expected_mixed]


def requests(world):
    user = world.examples["WHALE"]
    given = {"user": user, "coin": "BTC", "startTime": 0, "oid": 1}
    given |= {"vaultAddress": user, "builder": user}
    bodies = {
        name: {
            parameter.name: given[parameter.name]
            for parameter in row.parameters
            if parameter.required or (name, parameter.name) == ("openInterestHistory", "coin")
        }
        for name, row in EXTRA_OPERATIONS.items()
        if name != "candleSnapshot"
    }
    req = {"coin": "BTC", "interval": "1h", "startTime": 0}
    return {**bodies, "candleSnapshot": {"req": req}}


def test_every_operation_is_answered(world, ask):
    for type_, body in requests(world).items():
        answer = ask(type_, **body)
        if EXTRA_OPERATIONS[type_].tables:
            frames = tk.frame(type_, answer)
            frames = frames if isinstance(frames, tuple) else (frames,)
            assert len(frames) == len(EXTRA_OPERATIONS[type_].tables), type_


# --- markets ---


def test_all_mids_equal_contexts(world, ask):
    for dex, meta in world.sources.metas.items():
        pairs = zip(meta.universe, world.sources.contexts[dex], strict=True)
        mids = {asset.name: context.mid_px for asset, context in pairs if context.mid_px}
        if not dex:
            spots = world.sources.spot_contexts
            mids |= {context.coin: context.mid_px for context in spots if context.mid_px}
        assert ask("allMids", dex=dex) == mids
    assert "MYRO" not in ask("allMids")  # a delisted perp has no book
    assert ask("allMids", dex="none") == {}


def test_spot_meta_equals_table(world, ask):
    meta = plain(world.sources.spot_meta)
    assert ask("spotMeta") == meta
    assert ask("spotMetaAndAssetCtxs") == [meta, plain(list(world.sources.spot_contexts))]
    assert ask("outcomeMeta") == plain(world.sources.outcome_meta)


def test_fetched_markets_equal_tables(world, session):
    pairs, tokens = tk.spot_meta(session=session)
    names = tokens.set_index("index")["name"]
    assert [row.name for row in world.sources.spot_meta.universe] == pairs["name"].tolist()
    assert [row.name for row in world.sources.spot_meta.tokens] == names.tolist()
    assert pairs["tokens"].map(len).eq(2).all()
    for dex, coin in (("", "BTC"), ("eqx", "eqx:GOLD")):
        mids = tk.all_mids(dex=dex, session=session).set_index("coin")["mid_px"]
        coins = [asset.name for asset in world.sources.metas[dex].universe]
        context = world.sources.contexts[dex][coins.index(coin)]
        assert mids[coin] == float(context.mid_px)


def test_predicted_fundings_equal_contexts(world, session):
    rates = tk.predicted_fundings(session=session)
    universe, contexts = world.sources.metas[""].universe, world.sources.contexts[""]
    pairs = zip(universe, contexts, strict=True)
    expected = {
        asset.name: float(context.funding)
        for asset, context in pairs
        if asset.is_delisted is not True
    }
    own = rates[rates["venue"] == "HlPerp"]
    assert dict(zip(own["coin"], own["funding_rate"], strict=True)) == expected
    assert len(set(expected.values())) > 3
    assert "MYRO" not in expected
    assert own["funding_interval_hours"].eq(1).all()
    next_ms = own["next_funding_time"].dt.as_unit("ms").astype("int64")
    assert next_ms.eq(world.sources.now_ms // HOUR * HOUR + HOUR).all()
    others = rates[rates["venue"] != "HlPerp"]
    assert len(others) == 2 * len(own)
    assert others["funding_rate"].isna().all()


def test_books_agree_with_depth(world, ask):
    """All levels fit into an answer, so that each band's depth follows from them."""
    depth = ask("currentDepth")["data"]
    markets = {(market["dex"], market["coin"]): market["levels"] for market in depth}
    seen = 0
    for dex, meta in world.sources.metas.items():
        mids = ask("allMids", dex=dex)
        for asset in meta.universe:
            book = ask("l2Book", coin=asset.name)
            if asset.is_delisted is True:
                assert book is None
                continue
            assert (book["coin"], book["time"]) == (asset.name, world.sources.now_ms)
            bids, asks = ([(Decimal(x["px"]), Decimal(x["sz"])) for x in s] for s in book["levels"])
            assert bids == sorted(bids, reverse=True)
            assert asks == sorted(asks)
            mid = Decimal(mids[asset.name])
            assert bids[0][0] < mid < asks[0][0]
            assert (bids[0][0] + asks[0][0]) / 2 == mid
            name = (dex or "hyperliquid", asset.name.rpartition(":")[2])
            for level in markets[name]:
                width = mid * level["bps"] / 10_000
                bid = sum(px * sz for px, sz in bids if mid - px <= width)
                ask_usd = sum(px * sz for px, sz in asks if px - mid <= width)
                assert float(bid) == pytest.approx(level["bidDepthUsd"], rel=1e-9)
                assert float(ask_usd) == pytest.approx(level["askDepthUsd"], rel=1e-9)
                assert bid != ask_usd or not bid
            seen += 1
    assert seen == len(markets) > 10


def test_books_agree_with_samples(world, ask):
    """A buy of 100,000 USD takes from the asks, a sell from the bids."""
    now = world.sources.now_ms
    [sample] = ask("slippageHistory", coin="ETH", amount=100_000, startTime=now)
    bids, asks = ask("l2Book", coin="ETH")["levels"]
    mid = Decimal(ask("allMids")["ETH"])

    def average(levels):
        left, coins = Decimal(100_000), Decimal(0)
        for level in levels:
            px = Decimal(level["px"])
            taken = min(left, px * Decimal(level["sz"]))
            left, coins = left - taken, coins + taken / px
        assert not left
        return Decimal(100_000) / coins

    buy, sell = (average(asks) / mid - 1) * 10_000, (1 - average(bids) / mid) * 10_000
    assert abs(float(buy) - sample["buySlippageBps"]) <= 0.00501
    assert abs(float(sell) - sample["sellSlippageBps"]) <= 0.00501
    assert sample["buySlippageBps"] != sample["sellSlippageBps"]


@pytest.mark.parametrize(("digits", "mantissa"), [(2, None), (5, None), (5, 2)])
def test_rounded_book_keeps_sizes(ask, digits, mantissa):
    whole = ask("l2Book", coin="ETH")["levels"]
    more = {} if mantissa is None else {"mantissa": mantissa}
    rounded = ask("l2Book", coin="ETH", nSigFigs=digits, **more)["levels"]
    for before, after, sign in zip(whole, rounded, (1, -1), strict=True):
        assert sum(Decimal(x["sz"]) for x in after) == sum(Decimal(x["sz"]) for x in before)
        assert sum(x["n"] for x in after) == sum(x["n"] for x in before)
        assert (Decimal(before[0]["px"]) - Decimal(after[0]["px"])) * sign >= 0
        assert len({x["px"] for x in after}) == len(after) <= len(before)
        for level in after:
            price = Decimal(level["px"])
            step = Decimal(mantissa or 1).scaleb(price.adjusted() + 1 - digits)
            assert price % step == 0
    assert rounded != whole or digits == 5


def test_spot_books_are_empty(world, ask):
    coin = next(context.coin for context in world.sources.spot_contexts if context.mid_px)
    empty = {"coin": coin, "time": world.sources.now_ms, "levels": [[], []]}
    assert ask("l2Book", coin=coin) == empty
    assert ask("l2Book", coin="NONE") is None
    assert len(tk.frame("l2Book", ask("l2Book", coin=coin))) == 0


def test_perp_dexes_begin_with_null(world, ask):
    first, *others = ask("perpDexs")
    assert first is None
    assert [dex["name"] for dex in others] == [dex for dex in world.sources.metas if dex]
    limits = plain(world.sources.limits["eqx"])
    assert others[0]["assetToStreamingOiCap"] == limits["coinToOiCap"]


def test_funding_history_equals_payments(world, ask):
    paid = defaultdict(dict)
    for row in world.sources.funding:
        if row.delta.n_samples in (UNSET, None, 1):
            paid[row.delta.coin][row.time] = row.delta.funding_rate
    assert len(paid) > 10
    for coin, rates in paid.items():
        rows = ask("fundingHistory", coin=coin, startTime=0)
        assert rates.items() <= {row["time"]: row["fundingRate"] for row in rows}.items()


def test_funding_history_includes_both_bounds(world, ask):
    end = world.sources.now_ms
    rows = ask("fundingHistory", coin="BTC", startTime=end - 3 * HOUR, endTime=end - HOUR)
    assert [row["time"] for row in rows] == [end - 3 * HOUR, end - 2 * HOUR, end - HOUR]
    whole = ask("fundingHistory", coin="BTC", startTime=0)
    assert len(whole) == (end - world.sources.start_ms) // HOUR
    delisted = ask("fundingHistory", coin="MYRO", startTime=0)
    assert 0 < len(delisted) < len(whole)


def test_exchange_status_has_present_time(world, ask):
    assert ask("exchangeStatus") == {"time": world.sources.now_ms, "specialStatuses": None}


@pytest.mark.parametrize("interval", ["1m", "1d", "1M"])
def test_candles_equal_trades(world, ask, interval):
    trades = [
        fill
        for _, fill in world.sources.fills
        if fill.coin == "BTC" and fill.crossed and fill.dir not in NOT_TRADED
    ]
    rows = ask("candleSnapshot", req={"coin": "BTC", "interval": interval, "startTime": 0})
    assert sum(row["n"] for row in rows) == len(trades)
    assert sum(Decimal(row["v"]) for row in rows) == sum(Decimal(fill.sz) for fill in trades)
    assert len({fill.tid for fill in trades}) == len(trades)
    for row in rows:
        inside = [fill for fill in trades if row["t"] <= fill.time <= row["T"]]
        prices = [Decimal(fill.px) for fill in inside]
        assert (Decimal(row["o"]), Decimal(row["c"])) == (prices[0], prices[-1])
        assert (Decimal(row["h"]), Decimal(row["l"])) == (max(prices), min(prices))
        assert row["n"] == len(inside)
        assert (row["s"], row["i"]) == ("BTC", interval)
    assert all(item["T"] < two["t"] for item, two in itertools.pairwise(rows))


def test_candles_are_in_requested_range(world, ask):
    end = world.sources.now_ms
    asked = {"coin": "BTC", "interval": "1h", "startTime": end - 3 * HOUR, "endTime": end - HOUR}
    rows = ask("candleSnapshot", req=asked)
    assert [row["t"] for row in rows] == [end - 3 * HOUR, end - 2 * HOUR, end - HOUR][: len(rows)]
    assert [row["T"] - row["t"] for row in rows] == [HOUR - 1] * len(rows)
    assert ask("candleSnapshot", req={**asked, "coin": "NONE"}) == []


def test_day_candle_equals_context(world, ask):
    """The last day of history is complete: its candle has the volume of the context."""
    req = {"coin": "BTC", "interval": "1d", "startTime": world.sources.now_ms - DAY}
    universe, contexts = ask("metaAndAssetCtxs")
    place = [asset["name"] for asset in universe["universe"]].index("BTC")
    candle = ask("candleSnapshot", req=req)[0]
    assert Decimal(candle["v"]) == Decimal(contexts[place]["dayBaseVlm"])


# --- accounts ---


def test_state_equals_batch(world, ask):
    for dex in world.sources.metas:
        some = users(world)
        batch = dict(ask("batchClearinghouseStates", users=some, dex=dex)["successful_states"])
        for user in some[::5]:
            assert ask("clearinghouseState", user=user, dex=dex) == batch[user]


def test_unavailable_state_is_500(world, session):
    [user] = world.sources.unavailable
    application = session.client._transport._application  # type: ignore[attr-defined]
    body = json.dumps({"type": "clearinghouseState", "user": user}).encode()
    got = application.respond("POST", "/info", {"authorization": "Bearer local"}, body)
    assert (got.status, got.content) == (500, b'{"error":"An internal error occurred"}')


def test_spot_balances_equal_exchange(world, ask):
    some = {**world.expected, **world.expected_mixed}
    held = 0
    for user, truth in some.items():
        rows = ask("spotClearinghouseState", user=user)["balances"]
        theirs = {row["coin"]: Decimal(row["total"]) for row in rows}
        own = {name: t.balance for name, t in truth.tokens.items() if t.balance}
        apart = set(COLLATERAL.values())  # a unified account's wallet has that of its perps, too
        assert {name: total for name, total in theirs.items() if name not in apart} == {
            name: total for name, total in own.items() if name not in apart
        }
        held += len(theirs)
    assert held > 20
    assert ask("spotClearinghouseState", user=NOBODY) == {"balances": []}


def test_sub_accounts_have_states(world, ask):
    assert world.sources.sub_accounts
    for master, rows in world.sources.sub_accounts.items():
        answer = ask("subAccounts", user=master)
        named = [entry["subAccountUser"] for entry in answer]
        assert named == [row.sub_account_user for row in rows]
        for item in answer:
            user = item["subAccountUser"]
            assert item["clearinghouseState"] == ask("clearinghouseState", user=user)
            assert item["spotState"] == ask("spotClearinghouseState", user=user)
            assert ask("userRole", user=user) == {"role": "subAccount", "data": {"master": master}}
    assert ask("subAccounts", user=NOBODY) is None


def test_vaults_have_role_vault(world, ask):
    roles = {user: ask("userRole", user=user)["role"] for user in users(world)}
    deltas = [update.delta for _, update in world.sources.ledger]
    vaults = {delta.vault for delta in deltas if delta.type == "vaultCreate"}
    assert {user for user, role in roles.items() if role == "vault"} == vaults
    assert ask("userRole", user=world.builders[0]) == {"role": "user"}
    assert ask("userRole", user=NOBODY) == {"role": "missing"}


def test_vault_equities_add_up_to_account_value(world, ask):
    equities = defaultdict(Decimal)
    for user in users(world):
        for row in ask("userVaultEquities", user=user):
            equities[row["vaultAddress"]] += Decimal(row["equity"])
    assert len(equities) == 2
    for vault, equity in equities.items():
        states = ask("batchClearinghouseStates", users=[vault], dex="ALL_DEXES")
        [[_, by_dex]] = states["successful_states"]
        values = [Decimal(state["marginSummary"]["accountValue"]) for state in by_dex.values()]
        assert equity == sum(values)


def test_vault_details_equal_tables(world, session, ask):
    """The followers' gains and the leader's commission are what the vault has earned."""
    now, seen = world.sources.now_ms, 0
    for vault, role in world.sources.roles.items():
        if role.role != "vault":
            continue
        rows = [(who, row) for who, row in world.sources.ledger if row.delta.vault == vault]
        [leader] = {who for who, row in rows if row.delta.type == "vaultCreate"} - {vault}
        shares = {
            who: share
            for who, owned in world.sources.vault_equities.items()
            for share in owned
            if share.vault_address == vault
        }
        details = tk.vault_details(vault, user=leader, numbers="exact", session=session)
        [one], followers = details.vault.to_dict("records"), details.followers
        assert (one["leader"], one["follower_user"]) == (leader, "leader")
        named = followers["user"].replace("leader", leader)
        found = dict(zip(named, followers["vault_equity"], strict=True))
        assert found == {who: Decimal(share.equity) for who, share in shares.items()}
        assert followers["vault_equity"].is_monotonic_decreasing
        assert float(one["leader_fraction"]) == pytest.approx(
            float(found[leader] / sum(found.values()))
        )
        entered = {
            who: row.time
            for who, row in rows[::-1]
            if "Cr" in row.delta.type or "Dep" in row.delta.type
        }
        days = followers["days_following"].tolist()
        assert days == [(now - entered[who]) // DAY for who in named]
        commission = sum(
            Decimal(row.delta.commission)
            for who, row in rows
            if who == vault and row.delta.type == "vaultWithdraw"
        )
        earned = dict(ask("portfolio", user=vault))["perpAllTime"]["pnlHistory"][-1][1]
        assert sum(followers["all_time_pnl"]) + commission == Decimal(earned)
        assert len(set(followers["all_time_pnl"] - followers["pnl"])) > 2
        again = tk.vault_details(vault, session=session)
        assert again.vault["follower_user"].isna().all()
        assert dict(ask("portfolio", user=vault))["month"]["vlm"] in set(
            tk.vault_details(vault, numbers="text", session=session).portfolio["vlm"]
        )
        seen += 1
    assert seen == 2
    assert ask("vaultDetails", vaultAddress=NOBODY) is None


def test_portfolio_state_equals_tables(world, session):
    tables, modes = world.sources, set()
    for user in users(world)[::2]:
        found = tk.portfolio_state(user, dex="ALL_DEXES", numbers="exact", session=session)
        for dex, row in zip(tables.metas, found.accounts.to_dict("records"), strict=True):
            state = tables.states.get(dex, {}).get(user)
            value = state.margin_summary.account_value if state else "0"
            assert (row["user"], row["account_value"]) == (user, Decimal(value))
        held = tables.spot_states.get(user)
        expected = {row.coin: Decimal(row.total) for row in held.balances} if held else {}
        assert dict(zip(found.balances["coin"], found.balances["total"], strict=True)) == expected
        sizes = {
            held.position.coin: Decimal(held.position.szi)
            for dex in tables.metas
            if (state := tables.states.get(dex, {}).get(user))
            for held in state.asset_positions
        }
        assert dict(zip(found.positions["coin"], found.positions["szi"], strict=True)) == sizes
        [mode] = found.mode["user_abstraction"]
        assert mode == tk.info({"type": "userAbstraction", "user": user}, session=session)
        modes.add(mode)
        one = tk.portfolio_state(user, dex="eqx", numbers="exact", session=session)
        assert one.accounts["dex"].tolist() == ["eqx"]
        assert one.accounts["account_value"][0] == found.accounts["account_value"][1]
    assert len(modes) > 2


def test_completed_trades_equal_positions(world, session):
    """Trades and open positions together have every fee and payment of the perp tables."""
    seen = set()
    for user in [world.examples["WHALE"], *users(world)[::6]]:
        trades = tk.user_completed_trades_by_time(
            user, 0, page_size=3, numbers="exact", session=session
        )
        again = tk.user_completed_trades_by_time(
            user, 0, page_size=500, numbers="exact", session=session
        )
        assert trades.equals(again)
        fills = [
            fill
            for who, fill in world.sources.fills
            if who == user and not (fill.coin[0] in "#@" or "/" in fill.coin)
        ]
        paid = [row for row in world.sources.funding if row.user == user]
        for row in trades.to_dict("records"):
            first, last = (
                int(row[name].timestamp() * 1_000) for name in ("open_time", "close_time")
            )
            own = [
                fill for fill in fills if fill.coin == row["coin"] and first <= fill.time <= last
            ]
            # Fills of neighbouring trades in the same millisecond make the range ambiguous.
            if Decimal(own[0].start_position) or not _ends_flat(own[-1]):
                continue
            if sum(_ends_flat(fill) for fill in own) > 1:
                continue
            cash = sum(
                Decimal(fill.px) * Decimal(fill.sz) * (1 if fill.side == "A" else -1)
                for fill in own
            )
            fees = sum(Decimal(fill.fee) for fill in own)
            funding = sum(
                Decimal(payment.delta.usdc)
                for payment in paid
                if payment.delta.coin == row["coin"] and first < payment.time <= last
            )
            assert (row["gross_pnl"], row["fees"]) == (cash, fees)
            assert row["funding_pnl"] == funding
            assert row["net_pnl"] == cash - fees + funding
            stated = sum(Decimal(fill.closed_pnl) for fill in own)
            volume = sum(Decimal(fill.px) * Decimal(fill.sz) for fill in own)
            assert abs(stated - cash) <= volume / 10_000  # entry prices are truncated
            sold = own[0].side == "A"
            assert row["position_type"] == ("Short" if sold else "Long")
            seen.add((sold, cash > 0, len(own) > 2, bool(funding)))
        ends = [(fill.coin, fill.time) for fill in fills if _ends_flat(fill)]
        closes = trades["close_time"].dt.as_unit("ms").astype("int64")
        assert set(ends) <= set(zip(trades["coin"], closes, strict=True))
    assert len(seen) > 5


def _ends_flat(fill):
    sign = 1 if fill.side == "B" else -1
    return Decimal(fill.start_position) + sign * Decimal(fill.sz) == 0


def test_pnl_summary_sums_trades(world, session):
    user, end = world.examples["WHALE"], world.sources.now_ms - DAY
    trades = tk.user_completed_trades_by_time(user, 0, end, numbers="exact", session=session)
    [row] = tk.user_pnl_summary(user, end=end, numbers="exact", session=session).to_dict("records")
    assert (row["total_pnl"], row["total_fees"], row["total_funding"]) == (
        sum(trades["net_pnl"]),
        sum(trades["fees"]),
        sum(trades["funding_pnl"]),
    )
    wins = (trades["net_pnl"] > 0).sum()
    assert row["total_trades"] == len(trades) > wins > 0
    assert float(row["win_rate"]) == pytest.approx(wins / len(trades), abs=5e-5)
    assert float(row["win_rate"] + row["loss_rate"]) == pytest.approx(1, abs=1e-4)
    fills = [f for who, f in world.sources.fills if who == user and f.time <= end]
    assert row["days_active"] == len({fill.time // DAY for fill in fills})
    assert row["volume_traded"] == sum(Decimal(f.px) * Decimal(f.sz) for f in fills)
    assert json.loads(row["traded_pairs"]) == sorted({fill.coin for fill in fills})
    assert row["account_age_days"] == (world.sources.now_ms - fills[0].time) // DAY
    native = tk.user_pnl_summary(user, dex="main_dex", session=session)
    assert native["total_trades"][0] <= row["total_trades"] + 10**6
    nobody = tk.user_pnl_summary(NOBODY, session=session)
    assert nobody["total_trades"].tolist() == [0]


def fill_volumes(world, user):
    return [
        (fill.time, fill.crossed, Decimal(fill.px) * Decimal(fill.sz))
        for who, fill in world.sources.fills
        if who == user and fill.dir not in NOT_TRADED
    ]


def test_volume_equals_fills(world, ask):
    user = world.examples["WHALE"]
    mine = fill_volumes(world, user)
    whole = sum(volume for _, _, volume in mine)
    limit = ask("userRateLimit", user=user)
    assert Decimal(limit["cumVlm"]) == whole
    assert limit["nRequestsCap"] == 10_000 + int(whole)
    orders = [event for who, event in world.sources.orders if who == user]
    canceled = sum(event.status == "canceled" for event in orders)
    assert limit["nRequestsUsed"] == len({event.order.oid for event in orders}) + canceled
    assert Decimal(ask("referral", user=user)["cumVlm"]) == whole
    fees = ask("userFees", user=user)
    days = fees["dailyUserVlm"]
    assert len(days) == 15
    taken = sum(volume for _, is_taker, volume in mine if is_taker)
    everybody = [row for other in users(world) for row in fill_volumes(world, other)]
    sums = {
        name: sum(Decimal(day[name]) for day in days)
        for name in ("userCross", "userAdd", "exchange")
    }
    assert sums == {
        "userCross": taken,
        "userAdd": whole - taken,
        "exchange": sum(volume for _, is_taker, volume in everybody if is_taker),
    }


def test_fee_rates_equal_payments(world, ask):
    """The rate is that of a plain perp fill of the native dex, without a builder fee."""
    seen = 0
    for user, fill in world.sources.fills[::50]:
        plain_fill = fill.builder_fee is UNSET and fill.deployer_fee is UNSET
        if not plain_fill or fill.coin[0] in "#@" or "/" in fill.coin or fill.dir in NOT_TRADED:
            continue
        fees = ask("userFees", user=user)
        rate = Decimal(fees["userCrossRate" if fill.crossed else "userAddRate"])
        notional = Decimal(fill.px) * Decimal(fill.sz)
        assert abs(notional * rate - Decimal(fill.fee)) <= Decimal("0.000001")
        seen += 1
    assert seen > 100


def test_portfolio_ends_at_equity(world, ask):
    truths = {**world.expected, **world.expected_mixed}
    for user in users(world)[::7]:
        periods = dict(ask("portfolio", user=user))
        assert list(periods) == [
            *("day", "week", "month", "allTime"),
            *("perpDay", "perpWeek", "perpMonth", "perpAllTime"),
        ]
        truth = truths[user]
        perps = periods["perpAllTime"]
        moment, equity = perps["accountValueHistory"][-1]
        assert (moment, Decimal(equity)) == (world.sources.now_ms, truth.equity_end)
        assert Decimal(perps["pnlHistory"][-1][1]) == truth.equity_end - truth.ledger
        assert Decimal(perps["vlm"]) == sum(volume for _, _, volume in fill_volumes(world, user))
        day = periods["perpDay"]
        assert Decimal(day["pnlHistory"][0][1]) == 0
        assert day["accountValueHistory"][0][0] == world.sources.now_ms - DAY
        assert day["pnlHistory"][-1][0] == world.sources.now_ms


def test_abstraction_follows_account_mode(world, ask):
    latest = max(world.sources.account_snapshots, key=lambda snapshot: snapshot.time)
    modes = {row.user: row.account_mode for rows in latest.values.values() for row in rows}
    names = ["default", "dexAbstraction", "unifiedAccount", "portfolioMargin"]
    assert set(modes.values()) == {0, 1, 2, 3}
    for user, mode in modes.items():
        assert ask("userAbstraction", user=user) == names[mode]
        assert ask("userDexAbstraction", user=user) == (True if mode == 1 else None)


def test_unused_states_are_empty(world, ask):
    user = world.examples["WHALE"]
    assert ask("extraAgents", user=user) == []
    assert ask("userToMultiSigSigners", user=user) is None
    state = ask("spotDeployState", user=user)
    assert state == {"states": [], "gasAuction": ask("spotPairDeployAuctionStatus")}
    new = ask("referral", user=NOBODY)
    assert new["referrerState"] == {"stage": "needToTrade", "data": {"required": "10000.0"}}


def test_builder_rewards_equal_fees(world, ask):
    earned = defaultdict(Decimal)
    for _, fill in world.sources.fills:
        if isinstance(fill.builder, str) and isinstance(fill.builder_fee, str):
            earned[fill.builder] += Decimal(fill.builder_fee)
    assert earned
    for builder, amount in earned.items():
        assert Decimal(ask("referral", user=builder)["builderRewards"]) == amount


# --- orders, fills, funding ---


def test_open_orders_equal_journal(world, ask):
    last = {(user, event.order.oid): event for user, event in world.sources.orders}
    by_hand = {key: event for key, event in last.items() if event.status in OPEN_STATES}
    assert by_hand
    fills = defaultdict(list)
    for user, fill in world.sources.fills:
        fills[user, fill.oid].append(fill)
    seen = set()
    for user in users(world):
        rows, bare = (
            [row for dex in world.sources.metas for row in ask(type_, user=user, dex=dex)]
            for type_ in ("frontendOpenOrders", "openOrders")
        )
        for row in rows:
            key = user, row["oid"]
            seen.add(key)
            event = by_hand[key]
            assert {**row, "sz": ""} == {**plain(event.order), "sz": ""}
            moment = event.status_timestamp, event.tx_index
            later = [fill for fill in fills[key] if (fill.time, fill.tx_index) > moment]
            taken = sum(Decimal(fill.sz) for fill in later)
            assert Decimal(row["sz"]) == Decimal(event.order.sz) - taken
        assert [row["oid"] for row in bare] == [row["oid"] for row in rows]
        names = {"coin", "side", "limitPx", "sz", "oid", "timestamp"}
        assert all(row.keys() >= names for row in bare)
    assert seen == set(by_hand)


def test_order_status_is_last_event(world, ask):
    last = {(user, event.order.oid): event for user, event in world.sources.orders}
    for (user, oid), event in list(last.items())[::400]:
        answer = ask("orderStatus", user=user, oid=oid)
        assert answer["status"] == "order"
        assert answer["order"]["order"] == plain(event.order)
        assert answer["order"]["status"] == event.status
        assert answer["order"]["statusTimestamp"] == event.status_timestamp


def test_order_status_finds_client_id(world, ask):
    user, event = next((user, e) for user, e in world.sources.orders if e.order.cloid)
    found = ask("orderStatus", user=user, oid=event.order.cloid)
    assert found["order"]["order"]["oid"] == event.order.oid
    owner, parent = next((user, e.order) for user, e in world.sources.orders if e.order.children)
    child = parent.children[0].oid
    assert ask("orderStatus", user=owner, oid=child)["order"]["order"]["oid"] == child
    unknown = [(owner, 1), (owner, "0x" + "12" * 16), (NOBODY, event.order.oid)]
    for user, oid in unknown:
        assert ask("orderStatus", user=user, oid=oid) == {"status": "unknownOid"}


def test_user_funding_has_all_rows(world, ask):
    mine = defaultdict(list)
    for row in world.sources.funding:
        mine[row.user].append({k: v for k, v in plain(row).items() if k != "user"})
    approved = {approval.user for approval in world.sources.approvals}
    assert set(mine) - approved  # also users without an approved builder
    for user, rows in mine.items():
        assert ask("userFunding", user=user, startTime=0) == rows
        middle = rows[len(rows) // 2]["time"]
        part = [row for row in rows if middle <= row["time"] <= middle + HOUR]
        assert ask("userFunding", user=user, startTime=middle, endTime=middle + HOUR) == part
    assert ask("userFunding", user=NOBODY) == []


def test_twap_slices_equal_fills(world, ask):
    found = 0
    for user in users(world):
        mine = [fill for who, fill in world.sources.fills if who == user]
        slices = [(fill.tid, fill.twap_id) for fill in mine if fill.twap_id is not None]
        rows = ask("userTwapSliceFills", user=user)
        assert sorted((row["fill"]["tid"], row["twapId"]) for row in rows) == sorted(slices)
        times = [row["fill"]["time"] for row in rows]
        assert times == sorted(times, reverse=True)
        found += len(rows)
    assert found > 100


# --- staking ---


def test_delegators_agree_with_delegations(world, ask):
    assert world.sources.delegations
    for user in world.sources.delegations:
        delegated = defaultdict(Decimal)
        staked = Decimal(0)
        history = ask("delegatorHistory", user=user)
        times = [event["time"] for event in history]
        assert times == sorted(times, reverse=True)
        for event in history:
            [(kind, delta)] = event["delta"].items()
            if kind == "delegate":
                sign = -1 if delta["isUndelegate"] else 1
                delegated[delta["validator"]] += sign * Decimal(delta["amount"])
            else:
                staked += Decimal(delta["amount"]) * (1 if kind == "cDeposit" else -1)
        rows = {row["validator"]: Decimal(row["amount"]) for row in ask("delegations", user=user)}
        assert {name: amount for name, amount in delegated.items() if amount} == rows
        summary = ask("delegatorSummary", user=user)
        assert Decimal(summary["delegated"]) == staked == sum(rows.values())
    assert ask("delegatorSummary", user=NOBODY)["delegated"] == "0.0"
    assert ask("delegatorHistory", user=NOBODY) == ask("delegatorRewards", user=NOBODY) == []


def test_delegators_earn_their_share(world, ask):
    """All delegators together earn their share of the total reward of a day."""
    day = world.sources.now_ms
    rewards = [reward for reward in world.sources.rewards if reward.time == day]
    by_validator = {reward.validator: reward for reward in rewards}
    for user in world.sources.delegations:
        earned = [r for r in ask("delegatorRewards", user=user) if r["time"] == day]
        expected = sum(
            Decimal(by_validator[row["validator"]].delegator_rewards)
            * Decimal(row["amount"])
            / Decimal(by_validator[row["validator"]].staked)
            for row in ask("delegations", user=user)
        )
        total = sum(Decimal(reward["totalAmount"]) for reward in earned)
        assert abs(total - expected) < Decimal("0.00000002")
        assert all(reward["source"] == "delegation" for reward in earned)
    validator = max(by_validator.values(), key=lambda reward: Decimal(reward.commission))
    own = ask("delegatorRewards", user=validator.validator)
    assert own[0] == {"time": day, "source": "commission", "totalAmount": validator.commission}
