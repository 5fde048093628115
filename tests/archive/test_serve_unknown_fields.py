"""Unknown fields survive the archive and the service on it.

docs/live_service.md, section 1.
"""

import pytest

import toolkit as tk
from tests.archive.offline import offline_session
from tests.archive.world import store_session
from toolkit.archive import open as open_archive
from toolkit.contract.recorded_rows import build_record
from toolkit.contract.records import (
    Fill,
    FundingRow,
    LedgerUpdate,
    Meta,
    OrderStatus,
    SlippageSample,
)
from toolkit.contract.source_tables import Approval, Sources
from toolkit.service import build_store

USER, BUILDER = "0x" + "a" * 40, "0x" + "b" * 40
TIME = 1_756_684_800_000
FILL = {
    **{"coin": "BTC", "px": "64000.1", "sz": "1.0", "side": "B", "time": TIME},
    **{"startPosition": "0.0", "dir": "Open Long", "closedPnl": "0.0", "hash": "0x" + "1" * 64},
    **{"oid": 7, "crossed": True, "fee": "0.12", "tid": 3, "feeToken": "USDC", "twapId": None},
    "txIndex": 4,
    "liquidation": {"liquidatedUser": BUILDER, "markPx": "64001.0", "method": "market", "step": 2},
    "priority": "0.25",
}
ORDER = {
    **{"coin": "BTC", "side": "A", "limitPx": "70000.0", "sz": "2.0", "oid": 9},
    **{"timestamp": TIME, "triggerCondition": "N/A", "isTrigger": False, "triggerPx": "0.0"},
    **{"children": [], "isPositionTpsl": False, "reduceOnly": False, "orderType": "Limit"},
    **{"origSz": "2.0", "tif": "Gtc", "cloid": None},
}
PARENT = {**ORDER, "oid": 8, "children": [{**ORDER, "note": "stop"}, ORDER], "desk": "x"}
EVENT = {"txIndex": 5, "status": "open", "statusTimestamp": TIME + 1, "order": PARENT, "lane": 6}
FUNDING = {
    **{"time": TIME + 2, "hash": "0x" + "2" * 64, "user": USER, "tier": 3},
    "delta": {
        **{"type": "funding", "coin": "BTC", "usdc": "-1.5", "szi": "1.0"},
        **{"fundingRate": "0.0001", "premium": "0.5"},
    },
}
LEDGER = {
    **{"time": TIME + 3, "hash": "0x" + "3" * 64},
    "delta": {"type": "deposit", "usdc": "100.0", "bridge": "north"},
}
SAMPLE = {
    **{"timestamp": TIME, "dex": "hyperliquid", "coin": "BTC", "halfSpreadBps": 0.5},
    **{"amountUsd": 1000.0, "buySlippageBps": 1.5, "sellSlippageBps": 2.5, "venueCount": 4},
}
META = {
    "universe": [{"name": "BTC", "szDecimals": 5, "maxLeverage": 40, "sector": "coins"}],
    "collateralToken": 0,
}


@pytest.fixture(scope="module")
def session():
    sources = Sources(
        start_ms=TIME,
        now_ms=TIME + 60_000,
        label="test",
        simulated=True,
        fills=[(USER, build_record(Fill, FILL))],
        orders=[(USER, build_record(OrderStatus, EVENT))],
        funding=[build_record(FundingRow, FUNDING)],
        ledger=[(USER, build_record(LedgerUpdate, LEDGER))],
        approvals=[Approval(USER, BUILDER, 0, 0, True)],
        slippage=[build_record(SlippageSample, SAMPLE)],
        metas={"": build_record(Meta, META)},
    )
    return store_session(build_store(sources), label="test")


TIMES = (TIME - 1, TIME + 50_000)
CALLS = (  # fetch function, its arguments, and the unknown columns of the first row
    (tk.user_fills_by_time, (USER, *TIMES), {"priority": "0.25", "step": "2"}),
    (tk.builder_approved_fills_by_time, (BUILDER, *TIMES), {"priority": "0.25", "step": "2"}),
    (
        tk.historical_orders,
        (USER,),
        {"lane": "6", "desk": "x", "children_note": '["stop", null]'},
    ),
    (tk.builder_approved_funding_by_time, (BUILDER, *TIMES), {"tier": "3"}),
    (tk.user_non_funding_ledger_updates, (USER, *TIMES), {"bridge": "north"}),
    (tk.slippage_history, ("BTC", 1000, *TIMES), {"venue_count": "4"}),
    (tk.meta, (), {"sector": "coins"}),
)


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
@pytest.mark.filterwarnings("ignore::toolkit.errors.MissingField")
def test_unknown_fields_are_served(session, tmp_path):
    archive = open_archive(tmp_path)
    for fetch, arguments, _ in CALLS:
        archive.refresh(fetch, *arguments, session=session)
    for source in (session, offline_session(tmp_path)):
        for fetch, arguments, unknown in CALLS:
            decoded = fetch(*arguments, extra="keep", session=source)
            assert {name: decoded[name].iloc[0] for name in unknown} == unknown, fetch.__name__
