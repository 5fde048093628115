"""Specification, "userFills", "userFillsByTime": builder, dex, venue."""

# A test is named after its clause, with operation names as in requests.

import pytest

from tests.conformance import mini
from tests.conformance.rows import tids

ALICE, B1, B2, T = mini.ALICE, mini.B1, mini.B2, mini.T
BOTH = pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])


def _some(hand, type, **fields):
    return sorted(tids(hand.ask(type, user=ALICE, startTime=0, **fields)))


@BOTH
def test_builder_filter__routed_fills(hand, type):
    """Null is no filter."""
    assert _some(hand, type, builder=B1) == [1, 2, 3]
    assert _some(hand, type, builder=B2) == [8]
    assert _some(hand, type, builder=B2.upper().replace("X", "x")) == [8]
    assert _some(hand, type, builder=mini.NOBODY) == []
    assert _some(hand, type, builder=None) == list(range(1, 14))


def test_builder_filter__same_millisecond_in_order(hand):
    """Fills 1 and 2 belong to transaction 1, fill 3 to transaction 2 of the same block."""
    oldest_first = hand.ask("userFillsByTime", user=ALICE, startTime=0, builder=B1)
    assert tids(oldest_first) == [1, 2, 3]
    assert tids(hand.ask("userFills", user=ALICE, builder=B1)) == [3, 1, 2]
    page = hand.ask("userFillsByTime", user=ALICE, startTime=0, builder=B1, limit=2)
    assert tids(page) == [1, 2]


@BOTH
def test_builder_filter__all_accounts(tiny, latest_of, by_time_of, summary, type):
    """`userFillsByTime` omits the builder that routed a fill, `userFills` has it."""
    whole = {user: rows for user, rows in latest_of.items() if len(rows) < 2000}
    for user, rows in whole.items():
        for builder in summary["builders"]:
            routed = {row["tid"] for row in rows if row.get("builder") == builder}
            every = (by_time_of if type == "userFillsByTime" else latest_of)[user]
            assert tiny.ask(type, user=user, builder=builder, startTime=0) == [
                row for row in every if row["tid"] in routed
            ]


@BOTH
def test_builder_filter__malformed_is_400(hand, type):
    for wrong in ["", " ", "0x12", "B1", B1 + "0", 0, 7, True, False, [], [B1], {}]:
        body = {"user": ALICE, "startTime": 0, "builder": wrong}
        assert hand.refuse(type, **body)[0] == 400, wrong


@BOTH
def test_dex_filter__fills_of_dex(hand, type):
    assert set(_some(hand, type, dex="main_dex")) >= {1, 2, 3, 4, 5, 6, 7, 13}
    assert 8 not in _some(hand, type, dex="main_dex")
    assert _some(hand, type, dex="eqx") == [8]
    for unknown in ("nowhere", "eq", "eqxy"):
        assert _some(hand, type, dex=unknown) == []


def test_dex_filter__all_accounts(tiny, by_time_of):
    for dex in ("main_dex", "eqx", "pre"):
        found = [
            row["coin"].partition(":")[0] if ":" in row["coin"] else "main_dex"
            for user in by_time_of
            for row in tiny.ask("userFillsByTime", user=user, startTime=0, dex=dex)
        ]
        assert set(found) == {dex}


def test_venue__fills_of_venue(hand):
    table = {"PMX": [9], "pmx": [9], "pMx": [9], "KX": [11], "ZZ": [], "abcd": []}
    assert {venue: _some(hand, "userFillsByTime", venue=venue) for venue in table} == table


def test_venue__all_accounts(tiny, by_time_of):
    venues = {user: {row.get("venue") for row in rows} for user, rows in by_time_of.items()}
    traded = [(user, venue) for user, found in venues.items() for venue in found - {None}]
    assert traded
    for user, venue in traded:
        for written in (venue.upper(), venue.lower(), venue.title()):
            rows = tiny.ask("userFillsByTime", user=user, startTime=0, venue=written)
            assert {row["venue"] for row in rows} == {venue}
        assert tiny.ask("userFillsByTime", user=user, startTime=0, venue="zz") == []


def test_venue__malformed_is_400(hand):
    for wrong in ["", "P", "PMXPM", "P1", "P-X", "ÄÖ", 12, True, [], ["PMX"]]:
        assert hand.refuse("userFillsByTime", user=ALICE, startTime=0, venue=wrong)[0] == 400, wrong


def test_filters__combined_filters_apply_together(hand):
    assert _some(hand, "userFillsByTime", builder=B2, dex="eqx") == [8]
    assert _some(hand, "userFillsByTime", builder=B1, dex="eqx") == []
    assert _some(hand, "userFillsByTime", builder=B1, limit=2, endTime=T) == [1, 2]
