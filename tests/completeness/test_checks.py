"""The checks of rows: no break in whole histories, and every gap that a history can show."""

import itertools
import json
import operator
import re
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from tests.fetch.wire import fill
from tests.worlds import world_of
from toolkit.client import open_session
from toolkit.completeness.checks import HistoryChecks, row_proof
from toolkit.contract.answers import answer_rows, decode, encode
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill
from toolkit.frames import Collector
from toolkit.service.aggregation import aggregate_fills
from toolkit.times import HOUR, MINUTE

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
FILLS = OPERATIONS["userFillsByTime"]
LATEST = OPERATIONS["userFills"]
OF_BUILDER = OPERATIONS["builderApprovedFillsByTime"]
FUNDING = OPERATIONS["builderApprovedFundingByTime"]
SLIPPAGE = OPERATIONS["slippageHistory"]
LEDGER = OPERATIONS["userNonFundingLedgerUpdates"]
NOW = 1_756_684_800_000


def breaks_of(operation, rows, numbers="float", pages=1, **parameters):
    """Return the breaks of wire rows that come in some pages."""
    checks, found = HistoryChecks(operation, parameters), []
    for page in np.array_split(np.arange(len(rows)), pages):
        content = encode([rows[row] for row in page])
        answer = decode(operation, 200, {}, content, numbers=numbers)
        collector = Collector(operation, numbers)
        collector.add(answer_rows(operation, answer, {}))
        found += checks.add_page(*collector.columns())
    return found


def make_fill(tid, start, side="B", sz=1.0, **more):
    changed = {"sz": str(sz), "side": side, "startPosition": str(start)}
    return fill(NOW + tid, 0, tid) | changed | more


def with_user(row):
    return row | {"user": "0x" + "1" * 40}


def fills_by_user():
    """Return the fills of each account of a simulated exchange, as rows of the wire."""
    rows = {}
    for user, record in world_of("tiny").sources.fills:
        row = json.loads(msgspec.json.encode(record))
        row.pop("builder", None)
        rows.setdefault(user, []).append(row)
    return rows


# -- No false alarm -----------------------------------------------------------------------------


def test_simulated_accounts_have_no_break():
    """Each account has its fills; of spot coins, tokens also move by transfers."""
    count, forms = 0, itertools.cycle(("float", "exact", "text"))
    for rows, numbers in zip(fills_by_user().values(), forms, strict=False):
        breaks = breaks_of(FILLS, rows, numbers)
        assert not [found for found in breaks if found.group == "breaks"]
        assert all(re.match("@|.+/", found.text) for found in breaks)
        count += len(breaks)
    assert 0 < count < 100


def test_recorded_fills_have_no_break():
    """Real fills of five minutes; in 78 of their ties the account trades with itself."""
    path = RECORDINGS / "userFills.json"
    if not path.exists():
        pytest.skip("no recording of userFills")
    rows = json.loads(path.read_text())["response"]
    assert len(rows) == 500
    assert breaks_of(LATEST, rows) == []
    without = [row for number, row in enumerate(rows) if number not in (100, 300)]
    assert {found.kind for found in breaks_of(LATEST, without)} == {"chain"}


def test_recorded_funding_has_no_break():
    path = RECORDINGS / "userFunding.json"
    if not path.exists():
        pytest.skip("no recording of userFunding")
    rows = [with_user(row) for row in json.loads(path.read_text())["response"]]
    rows.sort(key=lambda row: row["time"])
    assert breaks_of(FUNDING, rows) == []


@given(st.randoms(use_true_random=False))
def test_fills_of_one_time_may_have_any_order(draw):
    """Fills of one millisecond: no field says their order."""
    position, rows = 0.0, []
    for tid in range(1, 40):
        side, sz = draw.choice("AB"), draw.choice([1.0, 2.0, 0.1])
        rows.append(make_fill(tid, round(position, 6), side, sz, time=NOW + tid // 8))
        position += sz if side == "B" else -sz
    ties = {}
    for row in rows:
        ties.setdefault(row["time"], []).append(row)
    shuffled = [row for tie in ties.values() for row in draw.sample(tie, len(tie))]
    assert breaks_of(FILLS, shuffled) == []


def test_rounding_of_large_positions_is_no_break():
    rows, position = [], 1e9
    for tid in range(1, 500):
        rows.append(make_fill(tid, position, sz=0.1))
        position = round(position + 0.1, 1)
    assert breaks_of(FILLS, rows) == []


def test_missing_start_positions_warn_without_break():
    rows = [make_fill(1, 0.0), make_fill(2, 0.0, startPosition=None), make_fill(3, 7.0)]
    with pytest.warns(UserWarning, match="startPosition"):
        assert breaks_of(FILLS, rows) == []


# -- What is found ------------------------------------------------------------------------------


def test_every_inner_gap_of_perps_is_found():
    """Drop one fill after the other that has an earlier and a later fill of its coin."""
    rows = max(fills_by_user().values(), key=len)[:250]
    coins = [row["coin"] for row in rows]
    undetected = 0
    for gap in range(len(rows)):
        others = {*coins[:gap]} & {*coins[gap + 1 :]}
        if coins[gap] not in others or set(coins[gap]) & set("@/#"):
            continue
        found = breaks_of(FILLS, rows[:gap] + rows[gap + 1 :], pages=4)
        undetected += not any(f"breaks {coins[gap]} " in f"{b.group} {b.text}" for b in found)
    assert undetected == 0


def test_break_names_coin_time_and_fill():
    (found,) = breaks_of(FILLS, [make_fill(1, 0.0), make_fill(7, 3.0)])
    assert found[:5] == ("chain", "breaks", 1, NOW + 7, NOW + 1)
    for named in ("BTC", "2025-09-01T00:00:00.007Z", "id 7", "from 3", "left 1"):
        assert named in found.text
    times = pa.array([10**18] * 2, pa.timestamp("ms", "UTC"))  # too late for a datetime
    (found,) = HistoryChecks(FUNDING, {}).add_page({"time": times, "coin": pa.array(["BTC"] * 2)})
    assert found.text == "BTC at 1000000000000000000 came twice"


def test_gap_with_another_cause_proves_no_loss():
    for operation, coin, cause, group in (
        (FILLS, "@107", "transferred", "unproved"),
        (FILLS, "#12", "transferred", "unproved"),
        (OF_BUILDER, "BTC", "revoked", "gaps"),
    ):
        rows = [make_fill(1, 0.0, coin=coin), make_fill(7, 3.0, coin=coin)]
        if operation is OF_BUILDER:
            rows = [with_user(row) for row in rows]
        (found,) = breaks_of(operation, rows)
        assert (found.group, cause in found.text) == (group, True)


def test_filtered_fills_are_no_chain():
    assert row_proof(FILLS, {})["proved"].startswith("between two fills of a perp")
    assert row_proof(FILLS, {"builder": "0x0"})["proved"] == "no fill came twice"
    fills = {"coin": ["BTC"] * 2, "side": ["B"] * 2, "sz": [1.0] * 2, "start_position": [0.0, 9.0]}
    columns = {name: pa.array(values) for name, values in fills.items()}
    columns |= {name: np.arange(2) + 1 for name in ("time", "tid")}
    assert HistoryChecks(FILLS, {"builder": "0x0"}).add_page(columns) == []
    assert len(HistoryChecks(FILLS, {"user": "0x0"}).add_page(columns)) == 1
    assert len(HistoryChecks(OF_BUILDER, {"builder": "0x0"}).add_page(columns)) == 1


def test_merged_fills_are_no_chain():
    """An order that trades with an order of the same account is merged around its other fills."""
    first = make_fill(1, 0.0, "A", 129.1)
    sides = [(2, "B", 92.2, 158), (2, "A", 92.2, 135), (3, "B", 148.6, 158)]
    tie = [make_fill(tid, -129.1, side, sz, oid=oid, time=NOW + 2) for tid, side, sz, oid in sides]
    assert breaks_of(FILLS, [first, *tie]) == []
    merged = [first, tie[0] | {"sz": "240.8"}, tie[1]]
    for operation in (FILLS, LATEST):
        rows = merged if operation is FILLS else merged[::-1]
        assert breaks_of(operation, rows, aggregate_by_time=True) == []
        assert row_proof(operation, {"aggregate_by_time": True})["proved"] == "no fill came twice"
    assert len(breaks_of(FILLS, [*merged, merged[-1]], aggregate_by_time=True)) == 1  # came twice


def test_dex_and_venue_keep_chains():
    """Every fill of a coin is of the same dex and venue, so the filters leave out none of them."""
    rows = [make_fill(1, 0.0), make_fill(7, 3.0)]
    for filters in ({"dex": "main_dex"}, {"venue": "abc"}):
        (found,) = breaks_of(FILLS, rows, **filters)
        assert found.group == "breaks"
        assert row_proof(FILLS, filters) == row_proof(FILLS, {})


@pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not here")
def test_merged_recording_has_no_breaks():
    recorded = json.loads((RECORDINGS / "userFills.json").read_bytes())["response"]
    kept = {"tid": 0, "feeToken": "USDC", "twapId": None, "txIndex": 0}
    content = json.dumps([kept | row for row in reversed(recorded)])
    fills = msgspec.json.decode(content, type=list[Fill])
    by_time = itertools.groupby(fills, operator.attrgetter("time"))
    merged = [fill for _, tie in by_time for fill in aggregate_fills(list(tie))]
    assert len(merged) < len(fills)
    rows = json.loads(encode(merged))
    assert breaks_of(FILLS, rows, aggregate_by_time=True) == []


def test_unreadable_text_is_missing():
    """With numbers='text' nothing reads the numbers before the checks."""
    for text in ("", "?", "1.0.0", "0x1"):
        buy = make_fill(1, 0.0, coin="@107", sz=10.0, fee=text, feeToken="HYPE")
        sell, first = make_fill(2, 9.9, "A", coin="@107"), make_fill(3, 0.0)
        rows = [buy, sell, first, make_fill(4, 1.0, fee=text)]
        assert breaks_of(FILLS, rows, "text") == []
        (found,) = breaks_of(FILLS, [*rows, make_fill(5, 7.0)], "text")
        assert "id 5" in found.text


def make_payment(hour, szi="1.0", **more):
    delta = {"type": "funding", "coin": "BTC", "usdc": "1", "szi": szi, "fundingRate": "0.1"}
    return {
        "user": "0x" + "1" * 40, "time": NOW + hour * HOUR, "hash": "0x0", "delta": delta | more
    }  # fmt: skip


def test_missing_position_is_found_by_total():
    session = tk.local(seed=7, size="tiny", default=False)
    users = session.world["users"][:5]
    transport = tk.testing.faulty(session, {1: "row dropped"}, seed=1)
    with open_session("http://localhost", transport=transport) as damaged:
        with pytest.warns(tk.HistoryWarning, match="but its positions are worth"):
            accounts, _, _ = tk.batch_clearinghouse_states(users, session=damaged)
        assert len(tk.provenance(accounts)["gaps"]) == 1
        transport.is_active = False
        accounts, _, _ = tk.batch_clearinghouse_states(users, session=damaged)
        assert "gaps" not in tk.provenance(accounts)


def make_sample(step, offset=0):
    return {
        "timestamp": NOW + step * 15 * MINUTE + offset, "dex": "", "coin": "BTC",
        "halfSpreadBps": 1.0, "amountUsd": 1000.0, "buySlippageBps": 1.0, "sellSlippageBps": 1.0,
    }  # fmt: skip


BUY = make_fill(1, 0.0, coin="@107", sz=10.0, fee="0.0035", feeToken="HYPE")
LATE = [make_fill(3, 9.0), make_fill(2, 8.0), make_fill(1, 2.0, time=NOW)]
DEPOSITS = [
    {"time": NOW, "hash": "0x1", "delta": {"type": "deposit", "usdc": usdc}}
    for usdc in ("5.0", "6.0", "5.0")
]
REVOKED = [with_user(row) for row in (make_fill(1, 0.0), make_fill(7, 3.0, time=NOW + HOUR + 1))]
HOURS = [make_payment(0), make_payment(1)]
NO_TRADES = ((5.0, "B"), (5.0, "B"), (6.0, "A"))
NO_IDS = [make_fill(2, *fill) | {"tid": 0, "oid": oid} for oid, fill in enumerate(NO_TRADES)]
BREAKS = [
    # operation, rows, and (kind, group) of the breaks that they show
    (LATEST, LATE, []),  # the oldest tie may be cut
    (FILLS, LATE[::-1], [("chain", "breaks")]),
    (LATEST, [make_fill(3, 2.0), make_fill(1, 0.0), make_fill(2, 1.0)], [("order", "breaks")]),
    (FILLS, [make_fill(1, 0.0), *[make_fill(2, 1)] * 2, make_fill(3, 2)], [("repeat", "breaks")]),
    (FILLS, [make_fill(1, 4.0), *NO_IDS, make_fill(3, 6.0)], []),
    # two sides of an own trade
    (FILLS, [make_fill(1, 5.0), make_fill(1, 5.0, "A"), make_fill(2, 5.0)], []),
    # A buy pays its fee in the token; less than a unit of the written balance is rounding.
    (FILLS, [BUY, make_fill(2, 9.9965, "A", coin="@107")], []),
    (FILLS, [BUY, make_fill(2, 9.99, "A", coin="@107")], []),
    (FILLS, [BUY, make_fill(2, 9.8, "A", coin="@107")], [("chain", "unproved")]),
    # A builder has no fills of an account that revoked its approval.
    (OF_BUILDER, REVOKED, [("chain", "unproved")]),
    (LEDGER, DEPOSITS, [("repeat", "gaps")]),  # may be real
    # An approval was revoked, or the position was closed and opened again.
    (FUNDING, [make_payment(0), make_payment(4)], [("hours", "unproved")]),
    (FUNDING, [*HOURS, make_payment(3)], [("hours", "gaps")]),
    (FUNDING, [*HOURS, make_payment(3, "2.0")], []),
    (FUNDING, [*HOURS, make_payment(3, nSamples=2)], []),
    (FUNDING, [HOURS[0], HOURS[0] | {"time": NOW + MINUTE}], [("hours", "breaks")]),
    (FUNDING, [HOURS[0], make_payment(0, usdc="2")], [("repeat", "breaks")]),
    (SLIPPAGE, [make_sample(step) for step in (0, 1, 4)], [("grid", "gaps")]),
    (SLIPPAGE, [make_sample(step, 7) for step in (0, 1, 4)], []),  # the service has another grid
]


def test_rows_show_breaks():
    wrong = []
    for operation, rows, breaks in BREAKS:
        found = breaks_of(operation, rows)
        if [(each.kind, each.group) for each in found] != breaks:
            wrong.append((operation.type, found, breaks))
    assert wrong == []


def test_break_names_row_and_number():
    (repeat,) = breaks_of(LEDGER, DEPOSITS)
    (hour,) = breaks_of(FUNDING, [*HOURS, make_payment(3)], pages=3)
    (sample,) = breaks_of(SLIPPAGE, [make_sample(step) for step in (0, 1, 4)], pages=3)
    assert (repeat.row, hour.time) == (2, NOW + 3 * HOUR)
    assert "1 hour" in hour.text
    assert "3 steps" in sample.text
