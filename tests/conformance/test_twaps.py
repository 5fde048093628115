"""Specification, "TWAP snapshot", "perpTwapSnapshots"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import datetime

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import case_name, snapshots

EVERY_TWAP = set(mini.TWAPS)
MAIN_TWAPS = {"BTC", "ETH"}


def markets(caller, *wanted):
    return set(snapshots(caller, "perpTwapSnapshots", *wanted))


@pytest.fixture(scope="module")
def twaps(tiny, hand):
    """The tuples of both exchanges, by the names of their indices."""
    tuples = [
        values
        for caller in (tiny, hand)
        for snapshot in snapshots(caller, "perpTwapSnapshots", "ALL:ALL_DEXES").values()
        for values in snapshot[2]
    ]
    assert {len(entry) for entry in tuples} == {21}
    return [dict(zip(shapes.TWAP_TUPLE, entry, strict=True)) for entry in tuples]


@shapes.fields(shapes.TWAP_TUPLE)
def test_twap_tuple__types(twaps, field, words):
    kind, *more = words.split(", ")
    values = [twap[field] for twap in twaps]
    assert all(
        shapes.is_kind(kind, value) or (value is None and "null" in more) for value in values
    )
    if "seen" in more:
        assert {value is None for value in values} == {True, False}


def test_twap_tuple__remaining_is_total_less_executed(twaps):
    for twap in twaps:
        assert twap["remaining_sz"] == pytest.approx(twap["total_sz"] - twap["executed_sz"])


def test_twap_tuple__progress_0_to_100(twaps):
    assert all(0 <= twap["progress_pct"] <= 100 for twap in twaps)


def test_twap_tuple__next_slice_time_is_iso(twaps):
    assert all(datetime.datetime.fromisoformat(twap["next_slice_time"]) for twap in twaps)


@pytest.mark.parametrize("field", ["is_buy", "reduce_only", "randomize", "waiting"])
def test_twap_tuple__flags_true_and_false(twaps, field):
    assert {twap[field] for twap in twaps} == {True, False}


def test_twap_tuple__waiting_has_trigger_price(twaps):
    for twap in twaps:
        assert twap["waiting"] == (twap["trigger_px"] is not None)
        assert (twap["trigger_above"] is None) == (twap["trigger_px"] is None)


def test_twap_snapshot__array_form(hand):
    found = snapshots(hand, "perpTwapSnapshots", "ALL:ALL_DEXES")
    assert found == {
        market: [mini.SNAPSHOT, market, [list(row.values()) for row in rows]]
        for market, rows in mini.TWAPS.items()
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["BTC"], {"BTC"}),
        (["eqx:TSLA"], {"eqx:TSLA"}),
        (["BTC", "eqx:TSLA"], {"BTC", "eqx:TSLA"}),
        (["BTC", "TSLA"], {"BTC"}),
        (["BTC", "eqx:BTC"], {"BTC"}),
        (["ALL"], MAIN_TWAPS),
        (["ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:ALL_DEXES"], EVERY_TWAP),
        (["ALL", "ALL:eqx"], MAIN_TWAPS | {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL", "ALL:pre", "ALL:eqx"], EVERY_TWAP),
        (["ALL", "pre:OPENAI"], MAIN_TWAPS | {"pre:OPENAI"}),
    ],
    ids=case_name,
)
def test_perpTwapSnapshots__market_names_select_markets(hand, wanted, found):
    assert markets(hand, *wanted) == found


@pytest.mark.parametrize(
    "others", [["BTC"], ["ALL"], ["ALL:eqx", "NOTHING"], ["pre:OPENAI", "ALL", "ALL:pre"]]
)
def test_perpTwapSnapshots__all_dexes(hand, others):
    assert markets(hand, *others, "ALL:ALL_DEXES") == EVERY_TWAP
    assert markets(hand, "ALL:ALL_DEXES", *others) == EVERY_TWAP


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["ALL", "BTC", "ETH"], MAIN_TWAPS),
        (["ALL", "NOTHING"], MAIN_TWAPS),
        (["eqx:TSLA", "ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:pre", "pre:OPENAI"], {"pre:OPENAI"}),
        (["ALL:eqx", "eqx:TSLA", "BTC"], {"eqx:TSLA", "eqx:NVDA", "BTC"}),
    ],
    ids=case_name,
)
def test_perpTwapSnapshots__overlapping_patterns_are_joined(hand, wanted, found):
    assert markets(hand, *wanted) == found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["BTC", "BTC"], {"BTC"}),
        (["ALL", "ALL"], MAIN_TWAPS),
        (["ALL:eqx", "ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:ALL_DEXES", "ALL:ALL_DEXES"], EVERY_TWAP),
    ],
    ids=case_name,
)
def test_perpTwapSnapshots__duplicate_names_are_ignored(hand, wanted, found):
    assert markets(hand, *wanted) == found
