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


@shapes.fields(shapes.DEPTH)
def test_depth_response__types(depth, field, words):
    shapes.check_values([depth], field, words)
    shapes.no_other_fields([depth], shapes.DEPTH)


@shapes.fields(shapes.MARKET)
def test_depth_response__data_types(depth, field, words):
    shapes.check_values(depth["data"], field, words)
    shapes.no_other_fields(depth["data"], shapes.MARKET)


@shapes.fields(shapes.LEVEL)
def test_depth_response__level_types(depth, field, words):
    levels = [level for market in depth["data"] for level in market["levels"]]
    shapes.check_values(levels, field, words)
    shapes.no_other_fields(levels, shapes.LEVEL)


def test_currentDepth__bps_thresholds(depth):
    for market in depth["data"]:
        assert [level["bps"] for level in market["levels"]] == [10, 25, 50, 100, 200, 500]


@pytest.mark.parametrize("side", ["bidDepthUsd", "askDepthUsd"])
def test_currentDepth__cumulative_per_level(depth, side):
    for market in depth["data"]:
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
    data = depth["data"]
    assert {
        (market["dex"], market["coin"].removeprefix(f"{market['dex']}:")) for market in data
    } == listed(tiny)


def test_currentDepth__unique_markets(depth):
    keys = [(market["dex"], market["coin"]) for market in depth["data"]]
    assert len(set(keys)) == len(keys)


def test_currentDepth__grouped_by_dex(depth):
    dexes = [market["dex"] for market in depth["data"]]
    assert dexes == sorted(dexes, key=dexes.index)
    assert set(dexes) == {"hyperliquid", "eqx", "pre"}


def test_currentDepth__exact_values(hand):
    assert hand.ask("currentDepth") == mini.DEPTH


@pytest.mark.parametrize(("dex", "count"), [("eqx", 1), ("hyperliquid", 2), ("nowhere", 0)])
def test_currentDepth__dex_selects_its_markets(hand, dex, count):
    data = hand.ask("currentDepth", dex=dex)["data"]
    assert [market["dex"] for market in data] == [dex] * count


def test_currentDepth__age_at_most_one_second(hand, later, tiny, world):
    for item, now in ((hand, NOW), (later, NOW + 10_500), (tiny, world.sources.now_ms)):
        assert 0 <= now - item.ask("currentDepth")["timestampMs"] <= 1_000


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


@shapes.fields(shapes.SLIPPAGE)
def test_slippage_sample__types(samples, field, words):
    shapes.check_values(samples, field, words)
    shapes.no_other_fields(samples, shapes.SLIPPAGE)


def test_slippageHistory__exact_values(hand):
    got = hand.ask("slippageHistory", **BTC, startTime=FIRST, endTime=FIRST + 9 * QUARTER)
    assert got == mini.SAMPLES[:10]


@pytest.mark.parametrize("amount", SIZES)
@pytest.mark.parametrize("coin", ["BTC", "eqx:TSLA"])
def test_slippageHistory__supported_sizes(histories, coin, amount):
    assert {row["amountUsd"] for row in histories[coin, amount]} == {amount}


def test_slippageHistory__15_minute_grid(histories):
    for rows in histories.values():
        times = [row["timestamp"] for row in rows]
        assert {late - early for early, late in itertools.pairwise(times)} == {QUARTER}
        assert times[0] % QUARTER == 0


@pytest.mark.parametrize("field", ["halfSpreadBps", "buySlippageBps", "sellSlippageBps"])
def test_slippageHistory__two_decimals(samples, field):
    assert all(row[field] is None or row[field] == round(row[field], 2) for row in samples)


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


def test_slippageHistory__deployed_dex(hand):
    rows = hand.ask("slippageHistory", coin="eqx:TSLA", amount=5000, startTime=0)
    assert rows == mini.TESLA_SAMPLES


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [(0, 0, 1), (0, 1, 2), (1, 0, 0), (2_500, 2_500, 1)],
)
def test_slippageHistory__inclusive_bounds(hand, start, end, count):
    span = {"startTime": FIRST + start * QUARTER, "endTime": FIRST + end * QUARTER}
    assert len(hand.ask("slippageHistory", **BTC, **span)) == count


def test_slippageHistory__limit_keeps_oldest(hand):
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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"amount": 1000, "startTime": 0}, COIN),
        ({"coin": None, "amount": 1000, "startTime": 0}, COIN),
        ({"coin": "", "amount": 1000, "startTime": 0}, COIN),
        ({"coin": "BTC", "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": None, "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": 0, "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": -1000, "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": "1000", "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": True, "startTime": 0}, AMOUNT),
        ({"coin": "BTC", "amount": 1000}, START),
        ({"coin": "BTC", "amount": 1000, "startTime": None}, START),
        ({}, COIN),
    ],
    ids=str,
)
def test_errors__slippageHistory_missing_field_is_400(hand, fields, message):
    assert hand.refuse("slippageHistory", **fields) == (400, message)


# meta and metaAndAssetCtxs.


@pytest.fixture(scope="module")
def universe(tiny):
    return [asset for dex in DEXES for asset in tiny.ask("meta", dex=dex)["universe"]]


@shapes.fields(shapes.PERP)
def test_perp_metadata__types(universe, field, words):
    shapes.check_values(universe, field, words)


def test_perp_metadata__no_other_fields(universe, tiny):
    shapes.no_other_fields(universe, shapes.PERP)
    assert tiny.ask("meta").keys() - shapes.BEYOND == {"universe"}


def test_perp_metadata__onlyIsolated_true_or_false(universe):
    assert {asset["onlyIsolated"] for asset in universe} == {True, False}


def test_meta__default_dex_is_native(hand):
    assert hand.ask("meta") == hand.ask("meta", dex="") == mini.METAS[""]


def test_meta__markets_of_one_dex(hand):
    assert hand.ask("meta", dex="eqx") == mini.METAS["eqx"]


@pytest.fixture(scope="module")
def contexts(hand, tiny):
    here = [row for dex in DEXES for row in tiny.ask("metaAndAssetCtxs", dex=dex)[1]]
    return here + hand.ask("metaAndAssetCtxs")[1]


@shapes.fields(shapes.CONTEXT)
def test_metaAndAssetCtxs__context_types(contexts, field, words):
    shapes.check_values(contexts, field, words)
    shapes.no_other_fields(contexts, shapes.CONTEXT)


def test_metaAndAssetCtxs__impactPxs_are_bid_and_ask(contexts):
    pairs = [context["impactPxs"] for context in contexts if context["impactPxs"]]
    assert pairs
    for pair in pairs:
        assert all(shapes.is_kind("decimal", px) for px in pair)
        assert float(pair[0]) <= float(pair[1])


@pytest.mark.parametrize("dex", DEXES)
def test_metaAndAssetCtxs__joined_by_index(tiny, dex):
    meta, contexts = tiny.ask("metaAndAssetCtxs", dex=dex)
    assert meta == tiny.ask("meta", dex=dex)
    assert len(meta["universe"]) == len(contexts) > 0


def test_metaAndAssetCtxs__contexts_of_one_dex(hand):
    assert hand.ask("metaAndAssetCtxs") == [mini.METAS[""], mini.CONTEXTS[""]]
    assert hand.ask("metaAndAssetCtxs", dex="eqx") == [mini.METAS["eqx"], mini.CONTEXTS["eqx"]]


# perpDexLimits.


@shapes.fields(shapes.LIMITS)
def test_perp_dex_limits__types(tiny, field, words):
    rows = [tiny.ask("perpDexLimits", dex="eqx")]
    shapes.check_values(rows, field, words)
    shapes.no_other_fields(rows, shapes.LIMITS)


def test_perp_dex_limits__coinToOiCap_types(tiny):
    pairs = tiny.ask("perpDexLimits", dex="eqx")["coinToOiCap"]
    assert pairs
    for coin, cap in pairs:
        assert shapes.is_kind("string", coin)
        assert shapes.is_kind("decimal", cap)


def test_perpDexLimits__exact_values(hand):
    assert hand.ask("perpDexLimits", dex="eqx") == mini.LIMITS["eqx"]


@pytest.mark.parametrize("dex", ["", "pre"])
def test_perpDexLimits__null_without_limits(tiny, dex):
    got = tiny.post({"type": "perpDexLimits", "dex": dex})
    assert (got.status_code, got.content.strip()) == (200, b"null")
    assert got.headers["content-type"] == "application/json"
