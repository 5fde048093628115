"""Specification, "TWAP snapshot", "perpTwapSnapshots"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import datetime

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import snapshots

EVERY_TWAP = set(mini.TWAPS)


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


def test_twap_tuple__types(twaps):
    shapes.check_rows(twaps, shapes.TWAP_TUPLE)
    for flag in ("is_buy", "reduce_only", "randomize", "waiting"):
        assert {twap[flag] for twap in twaps} == {True, False}
    assert all(datetime.datetime.fromisoformat(twap["next_slice_time"]) for twap in twaps)


def test_twap_tuple__remaining_is_total_less_executed(twaps):
    for twap in twaps:
        assert twap["remaining_sz"] == pytest.approx(twap["total_sz"] - twap["executed_sz"])
        assert 0 <= twap["progress_pct"] <= 100


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


def test_perpTwapSnapshots__market_names_select_markets(hand):
    """Overlapping patterns are joined, names are counted once."""
    main, eqx = {"BTC", "ETH"}, {"eqx:TSLA", "eqx:NVDA"}
    table = [
        (["BTC"], {"BTC"}),
        (["eqx:TSLA"], {"eqx:TSLA"}),
        (["BTC", "eqx:TSLA"], {"BTC", "eqx:TSLA"}),
        (["BTC", "eqx:BTC"], {"BTC"}),
        (["BTC", "BTC"], {"BTC"}),
        (["ALL"], main),
        (["ALL", "NOTHING"], main),
        (["ALL:eqx"], eqx),
        (["eqx:TSLA", "ALL:eqx"], eqx),
        (["ALL:eqx", "eqx:TSLA", "BTC"], eqx | {"BTC"}),
        (["ALL", "ALL:eqx"], main | eqx),
        (["ALL", "ALL:pre", "ALL:eqx"], EVERY_TWAP),
    ]
    others = ([], ["BTC"], ["ALL"], ["ALL:eqx", "NOTHING"], ["pre:OPENAI", "ALL", "ALL:pre"])
    table += [([*names, "ALL:ALL_DEXES"], EVERY_TWAP) for names in others]
    table += [(["ALL:ALL_DEXES", *names], EVERY_TWAP) for names in (*others, ["ALL:ALL_DEXES"])]
    assert [row for row in table if markets(hand, *row[0]) != row[1]] == []
