"""Recorded answers, served by the usual handlers."""

import json
from pathlib import Path

import pytest

import toolkit as tk
from tests.service.conftest import asker_of
from toolkit.service import build_store
from toolkit.service.recordings import RECORDED_BUILDER, NoRecordings, read_recordings

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
RECORDED = Path(__file__).parents[3] / "shared" / "recordings"
USER = "0x" + "Ab" * 20


def record(folder, name, request, response):
    text = json.dumps({"request": request, "status": 200, "response": response})
    (folder / f"{name}.json").write_text(text)


def record_fills(folder, *rows):
    record(folder, "userFills", {"type": "userFills", "user": USER}, list(rows))


def serve(folder, **how):
    """Return a client of the recordings in a folder, and what was read."""
    found = read_recordings(folder)
    return asker_of(build_store(found.sources, world=found.world, **how)), found


OLD_FILL = {
    "coin": "SUI",
    "px": "1.3189",
    "sz": "142.7",
    "side": "A",
    "time": 7,
    "startPosition": "4623.5",
    "dir": "Close Long",
    "closedPnl": "-0.25686",
    "hash": "0x1",
    "oid": 1,
    "crossed": True,
    "fee": "0.0",
}


def test_old_fills_are_served_unchanged(tmp_path):
    rows = [OLD_FILL, {**OLD_FILL, "hash": "0x2", "px": "1.0"}, {**OLD_FILL, "time": 5}]
    record_fills(tmp_path, *rows)
    asker, _ = serve(tmp_path)
    expected = [{**row, "txIndex": 0} for row in rows]
    assert asker.ask("userFills", user=USER) == expected
    assert asker.ask("userFillsByTime", user=USER, startTime=0) == [
        expected[2],
        expected[0],
        expected[1],
    ]


def test_recorded_fills_keep_order(tmp_path):
    """Newest first: transaction 5, then 2, then none; each keeps the order of execution."""
    rows = [
        OLD_FILL | {"oid": 30, "txIndex": 5},
        OLD_FILL | {"oid": 10, "txIndex": 2},
        OLD_FILL | {"oid": 20, "txIndex": 2},
        OLD_FILL | {"oid": 40, "txIndex": None},
    ]
    record_fills(tmp_path, *rows)
    asker, _ = serve(tmp_path)
    fills = asker.ask("userFillsByTime", user=USER, startTime=0)
    assert [(row["oid"], row["txIndex"]) for row in fills] == [(40, 0), (10, 2), (20, 2), (30, 5)]
    assert [row["oid"] for row in asker.ask("userFills", user=USER)] == [30, 10, 20, 40]


def test_sum_with_missing_part_is_missing(tmp_path):
    """A sum of which a part is missing is missing; unknown fields are kept."""
    object_ = {"liquidatedUser": None, "markPx": "1.2", "method": None, "novelty": 1}
    odd = {**OLD_FILL, "fee": None, "liquidation": object_, "novelty": [1]}
    rows = [odd, {**OLD_FILL, "fee": "0.5"}, {**OLD_FILL, "oid": 2, "dir": None, "cloid": None}]
    record_fills(tmp_path, *rows)
    asker, _ = serve(tmp_path)
    merged, other = asker.ask("userFillsByTime", user=USER, startTime=0, aggregateByTime=True)
    assert merged == {**odd, "sz": "285.4", "closedPnl": "-0.51372", "txIndex": 0}
    assert other == {**rows[2], "txIndex": 0}


def test_event_with_null_builder_is_served(tmp_path):
    """Live answers write null where a field has no value."""
    order = {"coin": "BTC", "side": "B", "oid": 1}
    event = {"status": "open", "statusTimestamp": 5, "txIndex": None, "order": order}
    rows = [event | {"builder": None}, event | {"builder": "0x" + "1" * 40}]
    record(tmp_path, "orders", {"type": "historicalOrders", "user": USER}, rows)
    asker, _ = serve(tmp_path)
    found = asker.ask("historicalOrders", user=USER)
    assert sorted(str(row["builder"]) for row in found) == ["0x" + "1" * 40, "None"]
    routed = asker.ask("builderOrdersByTime", builder="0x" + "1" * 40, startTime=0)
    assert len(routed) == 1


def test_open_order_without_size_is_served(tmp_path):
    """A later fill cannot be subtracted from a size that the recording lacks."""
    order = {"coin": "SUI", "side": "A", "oid": 1}
    events = [{"status": "open", "statusTimestamp": 5, "order": order}]
    record(tmp_path, "orders", {"type": "historicalOrders", "user": USER}, events)
    record(tmp_path, "fills", {"type": "userFills", "user": USER}, [OLD_FILL])
    asker, _ = serve(tmp_path)
    assert asker.ask("frontendOpenOrders", user=USER) == [order]
    assert [row["oid"] for row in asker.ask("openOrders", user=USER)] == [1]


def test_recorded_funding_belongs_to_stand_in_builder(tmp_path):
    delta = {
        "coin": "APE",
        "fundingRate": "-0.00029319",
        "nSamples": 3,
        "szi": "40.1",
        "type": "funding",
        "usdc": "0.145796",
    }
    rows = [{"delta": delta, "hash": "0x0", "time": 3}]
    record(tmp_path, "funding", {"type": "userFunding", "user": USER}, rows)
    asker, found = serve(tmp_path)
    assert found.world["builders"] == [RECORDED_BUILDER]
    (row,) = asker.ask("builderApprovedFundingByTime", builder=RECORDED_BUILDER, startTime=0)
    assert (row["user"], row["delta"]["usdc"]) == (USER.lower(), "0.145796")
    assert row["delta"]["nSamples"] == 3
    assert asker.ask("userFunding", user=USER) == rows


def test_operations_without_data_are_refused(tmp_path):
    """Candles or fees from the rows of a few accounts would be wrong, so they are refused."""
    order = {"type": "userFunding", "user": USER}
    record(tmp_path, "funding", order, [])
    record(tmp_path, "meta", {"type": "meta"}, {"universe": []})
    asker, found = serve(tmp_path)
    status, words = asker.refuse("userFees", user=USER)
    assert (status, words) == (
        400,
        "userFees cannot be answered: the data from which it is computed are not in "
        f"{found.sources.label}",
    )
    req = {"coin": "BTC", "interval": "1h", "startTime": 0}
    assert asker.refuse("candleSnapshot", req=req)[0] == 400
    assert asker.ask("openOrders", user=USER) == []
    assert asker.ask("orderStatus", user=USER, oid=1) == {"status": "unknownOid"}


BOOK = {
    "coin": "BTC",
    "time": 9,
    "levels": [
        [{"px": "99.98", "sz": "2.5", "n": 3}, {"px": "99.91", "sz": "1.0", "n": 1}],
        [{"px": "100.02", "sz": "4.0", "n": 2}],
    ],
}


def test_recorded_book_is_served(tmp_path):
    record(tmp_path, "book", {"type": "l2Book", "coin": "BTC"}, BOOK)
    asker, _ = serve(tmp_path)
    assert asker.ask("l2Book", coin="BTC") == BOOK
    rounded = asker.ask("l2Book", coin="BTC", nSigFigs=3)
    assert rounded["levels"] == [
        [{"px": "99.9", "sz": "3.5", "n": 4}],
        [{"px": "101.0", "sz": "4.0", "n": 2}],
    ]
    status, words = asker.refuse("l2Book", coin="ETH")
    assert (status, "has no book of ETH" in words) == (400, True)


def test_other_answers_are_served_to_the_same_request(tmp_path):
    spot = {
        "balances": [{"coin": "USDC", "token": 0, "total": "7.5", "hold": "0", "entryNtl": "0"}]
    }
    rounded = {"type": "l2Book", "coin": "BTC", "nSigFigs": 3}
    answers = (
        ({"type": "spotClearinghouseState", "user": USER}, spot),
        ({"type": "metaAndAssetCtxs"}, [{"universe": []}, []]),
        ({"type": "allMids"}, {"BTC": "100.5"}),
        (rounded, BOOK),
    )
    for number, (request, response) in enumerate(answers):
        record(tmp_path, str(number), request, response)
    session = tk.local(recordings=tmp_path, default=False)
    assert session.world["not_served"] == []
    for request, response in answers:
        assert tk.info(request, session=session) == response
    with pytest.raises(tk.BadRequest):
        tk.info({"type": "spotClearinghouseState", "user": "0x" + "e" * 40}, session=session)


def test_unserved_files_are_listed(tmp_path):
    record(tmp_path, "unknown", {"type": "neverHeardOf"}, {})
    with pytest.raises(NoRecordings):
        read_recordings(tmp_path)
    record(tmp_path, "meta", {"type": "meta"}, {"universe": []})
    record(tmp_path, "bad_fill", {"type": "userFills", "user": USER}, [{**OLD_FILL, "px": 5}])
    (tmp_path / "no_json.json").write_text("{")
    (tmp_path / "other.json").write_text("[]")
    found = read_recordings(tmp_path)
    assert found.not_served == found.world["not_served"] == ["unknown.json"]
    assert [text.split(":")[0] for text in found.damaged] == [
        "bad_fill.json",
        "no_json.json",
        "other.json",
    ]


def test_invalid_recorded_value_is_named(tmp_path):
    table = [
        ("px", "abc", "'abc'"),
        ("px", "NaN", "'NaN'"),
        ("sz", "1e999999999", "'1e999999999'"),
        ("fee", "", "''"),
        ("px", 5, "5"),
        ("time", 10**30, str(10**30)),
        *((name, None, "missing") for name in ("px", "coin", "time")),
    ]
    record(tmp_path, "good", {"type": "userFills", "user": USER}, [OLD_FILL])
    for field, value, named in table:
        rows = [OLD_FILL, {**OLD_FILL, field: value}]
        record(tmp_path, "bad", {"type": "userFills", "user": USER}, rows)
        asker, found = serve(tmp_path)
        [words] = found.damaged
        assert words.startswith(f"bad.json: row 1: {field}: ")
        assert named in words
        assert asker.ask("userFills", user=USER) == [{**OLD_FILL, "txIndex": 0}]


def test_invalid_nested_value_is_named(tmp_path):
    delta = {"type": "funding", "coin": "APE", "usdc": "1..5", "szi": "4", "fundingRate": "0.1"}
    good = {"delta": {**delta, "usdc": "1.5"}, "hash": "0x0", "time": 2}
    rows = [good, {**good, "delta": delta, "time": 3}]
    record(tmp_path, "funding", {"type": "userFunding", "user": USER}, rows)
    bids = [{"px": "99.98", "sz": "2.5", "n": 3}, {"px": "abc", "sz": "1.0", "n": 1}]
    levels = [bids, BOOK["levels"][1]]
    record(tmp_path, "book", {"type": "l2Book", "coin": "BTC"}, {**BOOK, "levels": levels})
    without = {name: value for name, value in OLD_FILL.items() if name != "coin"}
    record(tmp_path, "no_coin", {"type": "userFills", "user": USER}, [without])
    record(tmp_path, "odd_dex", {"type": "meta", "dex": 5}, {"universe": []})
    record(tmp_path, "meta", {"type": "meta"}, {"universe": []})
    _, found = serve(tmp_path)
    places = [
        "book.json: levels[0][1].px: 'abc'",
        "funding.json: row 1: delta.usdc: '1..5'",
        "no_coin.json: row 0: coin: ",
        "odd_dex.json: request: dex: 5 ",
    ]
    assert [place for place in places if not any(w.startswith(place) for w in found.damaged)] == []
    assert len(found.damaged) == len(places)
    assert found.world["users"] == []  # the valid row of a damaged file is not read either


def test_folder_without_recordings_names_reasons(tmp_path):
    for folder, named in ((tmp_path / "nowhere", "nowhere"), (tmp_path, r"\.json")):
        with pytest.raises(NoRecordings, match=named):
            read_recordings(folder)
    record(tmp_path, "bad", {"type": "userFills", "user": USER}, [{**OLD_FILL, "px": "abc"}])
    record(tmp_path, "odd", {"type": "neverHeardOf"}, {})
    with pytest.raises(NoRecordings, match=r"bad\.json: row 0: px: 'abc' .*; odd\.json: "):
        read_recordings(tmp_path)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings are not here")
def test_real_recordings_are_served():
    asker, found = serve(RECORDED)
    assert found.damaged == []
    assert found.not_served == []
    assert asker.now_ms == 1755863118217
    for file in ("userFills", "userNonFundingLedgerUpdates", "historicalOrders"):
        recording = json.loads((RECORDED / f"{file}.json").read_bytes())
        got = asker.ask(file, user=recording["request"]["user"])
        assert [{**row, "txIndex": 0} for row in got] == [
            {**entry, "txIndex": 0} for entry in recording["response"]
        ]
    funding = asker.ask("builderApprovedFundingByTime", builder=RECORDED_BUILDER, startTime=0)
    assert len(funding) == 218
    assert len(asker.ask("meta")["universe"]) == 28
    recording = json.loads((RECORDED / "l2Book.json").read_bytes())
    assert asker.ask("l2Book", coin="DYDX") == recording["response"]
    recording = json.loads((RECORDED / "clearinghouseState.json").read_bytes())
    user = recording["request"]["user"]
    got = asker.ask("batchClearinghouseStates", users=[user])
    assert got == {"successful_states": [[user, recording["response"]]], "failed_wallets": []}


def test_overlapping_recordings_are_merged(tmp_path):
    def update(time):
        return {"time": time, "hash": "0x0", "delta": {"type": "deposit", "usdc": "1.0"}}

    request = {"type": "userNonFundingLedgerUpdates", "user": USER}
    record(tmp_path, "first", request, [update(1), update(2), update(2)])
    record(tmp_path, "second", request, [update(2), update(3)])
    session = tk.local(recordings=tmp_path, default=False)
    ledger = tk.user_non_funding_ledger_updates(USER, session=session)
    assert [int(time.timestamp() * 1_000) for time in ledger["time"]] == [1, 2, 2, 3]


def test_unknown_fields_of_orders_are_served(tmp_path):
    """A strict service omits them."""
    child = json.loads((SAMPLES / "historicalOrders.json").read_bytes())["response"][0]["order"]
    parent = {**child, "oid": 7}
    event = {"status": "open", "statusTimestamp": 3}
    known = {**event, "order": {**parent, "children": [child]}}
    new_child = {**child, "newest": ["a", {"b": None}]}
    new_order = {**parent, "children": [new_child], "priority": {"level": 2}}
    row = {**event, "order": new_order, "origin": "app"}
    record(tmp_path, "historicalOrders", {"type": "historicalOrders", "user": USER}, [row])
    for strict, expected in ((False, row), (True, known)):
        asker, _ = serve(tmp_path, strict=strict)
        assert asker.ask("historicalOrders", user=USER) == [{**expected, "txIndex": 0}]
