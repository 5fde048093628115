"""Specification, "Market data"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import itertools

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import Row

NOW, QUARTER, FIRST = mini.NOW, mini.QUARTER, mini.FIRST_SAMPLE
BTC = {"coin": "BTC", "amount": 1000}
DEXES = ("", "eqx", "pre")
SIZES = [1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6]


# currentDepth.


@pytest.fixture(scope="module")
def depth(tiny):
    return tiny.ask("currentDepth")


def test_depth_response__types(depth):
    shapes.check_rows([depth], shapes.DEPTH)
    shapes.check_rows(depth["data"], shapes.MARKET)
    shapes.check_rows([row for item in depth["data"] for row in item["levels"]], shapes.LEVEL)


def test_currentDepth__cumulative_per_level(depth):
    for market in depth["data"]:
        assert [level["bps"] for level in market["levels"]] == [10, 25, 50, 100, 200, 500]
        for side in ("bidDepthUsd", "askDepthUsd"):
            depths = [level[side] for level in market["levels"]]
            assert depths == sorted(depths)
            assert depths[0] >= 0


def listed(caller):
    """Return (dex, coin) of the markets that are not delisted: only those have a mid price."""
    return {
        (dex or "hyperliquid", asset["name"].removeprefix(f"{dex}:"))
        for dex in DEXES
        for asset, context in zip(
            caller.ask("meta", dex=dex)["universe"],
            caller.ask("metaAndAssetCtxs", dex=dex)[1],
            strict=True,
        )
        if context["midPx"] is not None
    }


def test_currentDepth__listed_markets(depth, tiny):
    """Each market comes once, grouped by dex."""
    markets = [
        (item["dex"], item["coin"].removeprefix(f"{item['dex']}:")) for item in depth["data"]
    ]
    assert set(markets) == listed(tiny)
    assert len(set(markets)) == len(markets)
    dexes = [dex for dex, _ in markets]
    assert dexes == sorted(dexes, key=dexes.index)
    assert set(dexes) == {"hyperliquid", "eqx", "pre"}


def test_currentDepth__exact_values(hand):
    assert hand.ask("currentDepth") == mini.DEPTH
    for dex, count in {"eqx": 1, "hyperliquid": 2, "nowhere": 0}.items():
        data = hand.ask("currentDepth", dex=dex)["data"]
        assert [market["dex"] for market in data] == [dex] * count


def test_currentDepth__age_at_most_one_second(hand, hand_store, serve, tiny, world):
    later = NOW + 10_500
    for caller, now in (
        (hand, NOW),
        (serve(hand_store, later), later),
        (tiny, world.sources.now_ms),
    ):
        assert 0 <= now - caller.ask("currentDepth")["timestampMs"] <= 1_000


# slippageHistory.


@pytest.fixture(scope="module")
def histories(tiny, summary):
    """The samples of every coin with samples, for every size."""
    asked = itertools.product(summary["perp_coins"], SIZES)
    rows = {
        (coin, amount): tiny.ask("slippageHistory", coin=coin, amount=amount, startTime=0)
        for coin, amount in asked
    }
    return {asked: found for asked, found in rows.items() if found}


@pytest.fixture(scope="module")
def samples(histories):
    return [row for rows in histories.values() for row in rows]


def test_slippage_sample__types(samples):
    shapes.check_rows(samples, shapes.SLIPPAGE)
    for field in ("halfSpreadBps", "buySlippageBps", "sellSlippageBps"):
        assert all(row[field] is None or row[field] == round(row[field], 2) for row in samples)


def test_slippageHistory__exact_values(hand):
    got = hand.ask("slippageHistory", **BTC, startTime=FIRST, endTime=FIRST + 9 * QUARTER)
    assert got == mini.SAMPLES[:10]
    rows = hand.ask("slippageHistory", coin="eqx:TSLA", amount=5000, startTime=0)
    assert rows == mini.TESLA_SAMPLES


def test_slippageHistory__supported_sizes(histories):
    for coin, amount in itertools.product(("BTC", "eqx:TSLA"), SIZES):
        assert {row["amountUsd"] for row in histories[coin, amount]} == {amount}


def test_slippageHistory__15_minute_grid(histories):
    for rows in histories.values():
        times = [row["timestamp"] for row in rows]
        assert {late - early for early, late in itertools.pairwise(times)} == {QUARTER}
        assert times[0] % QUARTER == 0


def test_slippageHistory__half_spread_is_same_for_sizes(tiny):
    def spreads(amount):
        rows = tiny.ask("slippageHistory", coin="BTC", amount=amount, startTime=0)
        return [row["halfSpreadBps"] for row in rows]

    assert spreads(1_000) == spreads(1_000_000)


def test_slippageHistory__all_perp_markets(samples, tiny):
    """A market that has ended keeps its earlier samples (docs/live_service.md, section 1)."""
    latest = max(row["timestamp"] for row in samples)
    names = [(row["dex"], row["coin"].removeprefix(f"{row['dex']}:")) for row in samples]
    there = {name for name, row in zip(names, samples, strict=True) if row["timestamp"] == latest}
    assert there == listed(tiny)
    assert {name for _, name in set(names) - there} == {"MYRO"}


def test_slippageHistory__inclusive_bounds(hand):
    """`limit` keeps the oldest samples."""
    for start, end, count in [(0, 0, 1), (0, 1, 2), (1, 0, 0), (2_500, 2_500, 1)]:
        span = {"startTime": FIRST + start * QUARTER, "endTime": FIRST + end * QUARTER}
        assert len(hand.ask("slippageHistory", **BTC, **span)) == count
    assert hand.ask("slippageHistory", **BTC, startTime=0, limit=3) == mini.SAMPLES[:3]


def test_slippageHistory__all_pages(hand):
    rows: list[Row] = []
    start = 0
    while new := [
        row
        for row in hand.ask("slippageHistory", **BTC, startTime=start, limit=2000)
        if row not in rows[-1:]
    ]:
        rows += new
        start = rows[-1]["timestamp"]
    assert rows == mini.SAMPLES


COIN = "coin parameter is required"
AMOUNT = "amount parameter is required (positive USD notional)"
START = "startTime parameter is required"


def test_errors__slippageHistory_missing_field_is_400(hand):
    good = {"coin": "BTC", "amount": 1000, "startTime": 0}
    table = [
        ({"amount": 1000, "startTime": 0}, COIN),
        *((good | {"coin": wrong}, COIN) for wrong in (None, "")),
        ({"coin": "BTC", "startTime": 0}, AMOUNT),
        *((good | {"amount": wrong}, AMOUNT) for wrong in (None, 0, -1000, "1000", True)),
        ({"coin": "BTC", "amount": 1000}, START),
        (good | {"startTime": None}, START),
        ({}, COIN),
    ]
    for fields, message in table:
        assert hand.refuse("slippageHistory", **fields) == (400, message)


# meta and metaAndAssetCtxs.


def test_perp_metadata__types(tiny):
    metas = [tiny.ask("meta", dex=dex) for dex in DEXES]
    universe = [asset for meta in metas for asset in meta["universe"]]
    shapes.check_rows(universe, shapes.PERP)
    shapes.check_rows(metas, {"universe": "array"})
    assert {asset["onlyIsolated"] for asset in universe} == {True, False}


def test_meta__markets_of_one_dex(hand):
    assert hand.ask("meta") == hand.ask("meta", dex="") == mini.METAS[""]
    assert hand.ask("meta", dex="eqx") == mini.METAS["eqx"]


@pytest.fixture(scope="module")
def contexts(hand, tiny):
    here = [row for dex in DEXES for row in tiny.ask("metaAndAssetCtxs", dex=dex)[1]]
    return here + hand.ask("metaAndAssetCtxs")[1]


def test_metaAndAssetCtxs__context_types(contexts):
    shapes.check_rows(contexts, shapes.CONTEXT)


def test_metaAndAssetCtxs__impactPxs_are_bid_and_ask(contexts):
    pairs = [context["impactPxs"] for context in contexts if context["impactPxs"]]
    assert pairs
    for pair in pairs:
        assert all(shapes.is_kind("decimal", px) for px in pair)
        assert float(pair[0]) <= float(pair[1])


def test_metaAndAssetCtxs__joined_by_index(tiny):
    for dex in DEXES:
        meta, contexts = tiny.ask("metaAndAssetCtxs", dex=dex)
        assert meta == tiny.ask("meta", dex=dex)
        assert len(meta["universe"]) == len(contexts) > 0


def test_metaAndAssetCtxs__contexts_of_one_dex(hand):
    assert hand.ask("metaAndAssetCtxs") == [mini.METAS[""], mini.CONTEXTS[""]]
    assert hand.ask("metaAndAssetCtxs", dex="eqx") == [mini.METAS["eqx"], mini.CONTEXTS["eqx"]]


# perpDexLimits.


def test_perp_dex_limits__types(tiny):
    limits = tiny.ask("perpDexLimits", dex="eqx")
    shapes.check_rows([limits], shapes.LIMITS)
    assert limits["coinToOiCap"]
    for coin, cap in limits["coinToOiCap"]:
        assert shapes.is_kind("string", coin)
        assert shapes.is_kind("decimal", cap)


def test_perpDexLimits__exact_values(hand):
    assert hand.ask("perpDexLimits", dex="eqx") == mini.LIMITS["eqx"]


def test_perpDexLimits__null_without_limits(tiny):
    for dex in ("", "pre"):
        got = tiny.post({"type": "perpDexLimits", "dex": dex})
        assert (got.status_code, got.content.strip()) == (200, b"null")
        assert got.headers["content-type"] == "application/json"
