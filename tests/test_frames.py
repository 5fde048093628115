"""Frames: constant columns and dtypes, no lost values, errors that name invalid values."""

import pickle
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from tests.conformance.mini import fill, order
from toolkit.contract.answers import decode, encode
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.fields import record_columns, record_fields, table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import TwapRow
from toolkit.errors import AnswerInvalid, HistoryWarning, MissingField
from toolkit.frames import Collector, column_dtype, frame, provenance

FILL = fill(9007199254740993, 1756684800123, 4) | {
    "px": "64000.5",
    "sz": "0.00123",
    "startPosition": "-0.5",
    "closedPnl": "-1.000001",
    "oid": 12345678901,
    "fee": "0.0000001",
    "cloid": "0x" + "1" * 32,
    "builderFee": "0.00000005",
    "deployerFee": "0.1",
    "priorityGas": "0.01",
    "builder": "0x" + "2" * 40,
    "twapId": 77,
}
OPTIONAL = ("cloid", "builderFee", "deployerFee", "priorityGas", "feeToken", "builder")
BARE = {name: value for name, value in FILL.items() if name not in OPTIONAL} | {"twapId": None}
ORDER = order(7)

NUMBERS = ("float", "exact", "text")
TABLES = [table.record for row in OPERATIONS.values() for table in row.tables]


def test_fill_dtypes_never_change():
    columns = table_columns(OPERATIONS["userFills"].tables[0])
    for numbers in NUMBERS:
        dtypes = [column_dtype(column, numbers) for column in columns]
        for rows in ([], [FILL], [BARE], [FILL, BARE], [BARE, BARE]):
            fills = frame("userFills", rows, numbers=numbers)
            assert list(fills.columns) == [column.name for column in columns]
            assert list(fills.dtypes) == dtypes
            assert len(fills) == len(rows)


def test_empty_frame_of_every_record():
    for record in TABLES:
        if any(field.kind.family == "rows" for field in record_fields(record)):
            continue  # the answer of an operation, of which no list of rows exists
        columns = record_columns(record)
        assert len({column.name for column in columns}) == len(columns)
        for numbers in NUMBERS:
            dtypes = {column.name: column_dtype(column, numbers) for column in columns}
            assert dict(frame(record, [], numbers=numbers).dtypes) == dtypes, record


def test_fill_columns_and_values_are_unchanged():
    kinds = {name: str(kind) for name, kind in frame("userFills", [FILL]).dtypes.items()}
    assert kinds["time"] == "datetime64[ms, UTC]"
    assert kinds["px"] == "float64"
    assert kinds["oid"] == "int64"
    assert kinds["twap_id"] == "Int64"
    assert kinds["crossed"] == "boolean"  # it may be missing: docs/live_service.md, section 1
    assert kinds["coin"] == kinds["builder"] == "str"
    fill = frame("userFills", [FILL]).iloc[0]
    assert fill["px"] == 64000.5
    assert fill["time"] == pd.Timestamp("2025-09-01T00:00:00.123Z")
    assert fill["tid"] == 9007199254740993
    assert fill["closed_pnl"] == -1.000001
    assert bool(fill["crossed"]) is True


def test_exact_and_text_numbers_keep_digits():
    exact = frame("userFills", [FILL, BARE], numbers="exact")
    assert exact["fee"][0] == Decimal("0.0000001")
    assert exact["fee"].sum() == Decimal("0.0000002")
    assert (exact["closed_pnl"] + exact["fee"])[0] == Decimal("-1.0000009")
    assert exact["builder_fee"].isna().tolist() == [False, True]
    text = frame("userFills", [FILL], numbers="text")
    assert text["fee"][0] == "0.0000001"
    assert text["start_position"][0] == "-0.5"


@given(st.floats(0, 1e15, allow_subnormal=False))
def test_exact_json_numbers_are_rounded(number):
    week = {"week": 0, "netApr": number, "grossApr": 1 / 3, "totalDelegatorRewards": "1"}
    exact = frame("validatorAprHistory", [week], numbers="exact")
    assert abs(exact["net_apr"][0] - Decimal(repr(number))) <= Decimal("5e-19")
    assert exact["gross_apr"][0] == Decimal("0.3333333333333333")


def test_json_numbers_of_key_fields_are_read():
    """Some services write numbers where the specification has text."""
    fill = FILL | {"px": 0.25, "sz": 80}
    for numbers, px, sz in (("float", 0.25, 80.0), ("exact", Decimal("0.25"), 80)):
        row = frame("userFills", [fill], numbers=numbers).iloc[0]
        assert (row["px"], row["sz"]) == (px, sz)
    text = frame("userFills", [fill], numbers="text").iloc[0]
    assert (text["px"], text["sz"]) == ("0.25", "80")


def test_json_numbers_are_exact_too():
    sample = {
        "timestamp": 1756684800000,
        "dex": "main",
        "coin": "BTC",
        "halfSpreadBps": 0.07,
        "amountUsd": 1000,
        "buySlippageBps": 0.1,
        "sellSlippageBps": None,
    }
    exact = frame("slippageHistory", [sample], numbers="exact")
    assert exact["buy_slippage_bps"][0] == Decimal("0.1")
    assert exact["sell_slippage_bps"].isna().all()
    assert frame("slippageHistory", [sample], numbers="text")["half_spread_bps"][0] == "0.07"
    assert frame("slippageHistory", [sample])["amount_usd"][0] == 1000.0


def refusal(row, **options):
    """Return the error of a frame whose second row is wrong."""
    with pytest.raises(AnswerInvalid) as caught:
        frame("userFills", [FILL, row], **options)
    return caught.value


def test_invalid_values_are_named_with_place():
    changes = [
        ("px", "abc", "'abc'"),
        ("px", None, ""),
        ("px", "nan", "nan"),
        ("fee", "inf", "inf"),
        ("time", "soon", "'soon'"),
        ("time", 1.5, "1.5"),
        ("oid", 2**70, ""),
        ("crossed", "maybe", "'maybe'"),
        ("coin", 7, "7"),
    ]
    for column, value, shown in changes:
        error = refusal(FILL | {column: value})
        assert (error.operation, error.column, error.row) == ("userFills", column, 1)
        assert str(error).startswith(f"userFills, column {column}, row 1: ")
        assert shown in str(error)
    for value in ("0.1234567890123456789", "1e30", "", "0x1", "nan"):
        error = refusal(FILL | {"fee": value}, numbers="exact")
        assert (error.column, error.row, error.value) == ("fee", 1, value)
    error = refusal({name: value for name, value in FILL.items() if name != "px"})
    assert (error.column, error.row) == ("px", 1)


def test_missing_field_warns_once_per_operation():
    forget_deviations()
    short = {name: value for name, value in FILL.items() if name != "closedPnl"}
    with pytest.warns(MissingField, match=r"userFills: .*closedPnl") as caught:
        result = frame("userFills", [FILL, short, FILL | {"closedPnl": None}])
    assert len(caught) == 1
    assert result["closed_pnl"].isna().tolist() == [False, True, True]
    frame("userFills", [short])  # not again: warnings are errors
    with pytest.warns(MissingField, match="userFillsByTime"):
        frame("userFillsByTime", [{k: v for k, v in short.items() if k != "builder"}])


def test_unknown_operation_is_refused():
    for kind in (None, 5, dict):
        with pytest.raises(TypeError, match="kind"):
            frame(kind, [])
    with pytest.raises(ValueError, match="'fills'"):
        frame("fills", [])


def test_nested_cells_have_arrow_type():
    child = ORDER | {"oid": 8, "children": [ORDER], "triggerPx": "60000"}
    status = {"status": "open", "statusTimestamp": 1, "txIndex": 0}
    rows = [status | {"order": ORDER | {"children": [child]}}, status | {"order": ORDER}]
    for numbers in NUMBERS:
        children = frame("historicalOrders", rows, numbers=numbers)["children"]
        empty = frame("historicalOrders", [], numbers=numbers)
        assert children.dtype == empty["children"].dtype
        (only,) = children[0]
        assert only["oid"] == 8
        assert str(float(only["trigger_px"])) == "60000.0"
        assert len(children[1]) == 0


def test_other_iso_forms_become_times():
    market = {"name": "BTC", "szDecimals": 5, "maxLeverage": 40, "marginTableId": 1}
    texts = [
        "2025-09-01T00:00:30.123456Z",
        "2025-09-01T00:00:30",
        "2025-09-01 02:00:30+02:00",
        "20250901T000030Z",
        "2025-W36-1T00:00:30",
    ]
    rows = [market, *(market | {"lastGrowthModeChangeTime": text} for text in texts)]
    result = frame("meta", {"universe": rows, "collateralToken": 0})
    times = result["last_growth_mode_change_time"]
    assert times.isna().tolist() == [True] + [False] * 5
    assert times[1] == pd.Timestamp("2025-09-01T00:00:30.123Z")
    assert set(times[2:]) == {pd.Timestamp("2025-09-01T00:00:30Z")}


def test_seconds_and_iso_text_become_times():
    stamp = frame(
        "perpTwapSnapshotTimestamp",
        [{"snapshot_id": "20240915_state_123456789", "timestamp": 1694764800}],
    )
    assert stamp["timestamp"][0] == pd.Timestamp("2023-09-15T08:00:00Z")
    twap = dict.fromkeys([column.name for column in record_columns(TwapRow)]) | {
        "snapshot_id": "s",
        "market": "BTC",
        "address": "0x0",
        "twap_id": 1,
        "asset": "BTC",
        "is_buy": True,
        "duration_secs": 60,
        "start_time_ms": 0,
        "reduce_only": False,
        "randomize": False,
        "next_slice_time": "2025-09-01T00:00:30.5+00:00",
        "slice_number": 1,
        "waiting": False,
    }
    rows = frame("perpTwapSnapshots", [twap, twap | {"next_slice_time": None}])
    assert rows["next_slice_time"][0] == pd.Timestamp("2025-09-01T00:00:30.5Z")
    assert rows["next_slice_time"].isna().tolist() == [False, True]


def test_joined_pages_keep_dtypes():
    operation = OPERATIONS["userFills"]
    collector = Collector(operation, "float")
    for rows in ([FILL], [], [BARE], [FILL, BARE]):
        collector.add((decode(operation, 200, {}, encode(rows), numbers="float"),))
    assert collector.rows == 4
    (joined,) = collector.frames({"operation": "userFills"})
    assert (joined.dtypes == frame("userFills", []).dtypes).all()
    assert joined["cloid"].isna().tolist() == [False, True, False, True]
    assert joined.index.tolist() == [0, 1, 2, 3]


class Interrupted(list[object]):
    """Rows that raise KeyboardInterrupt when they are read."""

    def __iter__(self):
        raise KeyboardInterrupt


def test_interrupted_page_keeps_earlier_pages():
    operation = OPERATIONS["userFills"]
    records = decode(operation, 200, {}, encode([FILL, BARE]), numbers="float")
    collector = Collector(operation, "float")
    collector.add((records,))
    with pytest.raises(KeyboardInterrupt):
        collector.add((Interrupted(records),))
    assert collector.rows == 2
    (result,) = collector.frames({})
    assert result.equals(frame("userFills", [FILL, BARE]))


def test_interrupted_table_leaves_no_page():
    operation = OPERATIONS["perpDexLimits"]
    first, second = operation.tables
    empty = {column.name: [] for column in table_columns(first)}
    collector = Collector(operation, "float")

    class Stops(dict[str, list[object]]):
        def __getitem__(self, name):
            raise KeyboardInterrupt

    collector.add((empty, {column.name: [] for column in table_columns(second)}))
    with pytest.raises(KeyboardInterrupt):
        collector.add((empty, Stops()))
    assert [len(frame) for frame in collector.frames({})] == [0, 0]
    assert len(collector._pages) == 1


def test_interrupted_frames_can_repeat():
    operation = OPERATIONS["userFills"]
    collector = Collector(operation, "float")
    collector.add((decode(operation, 200, {}, encode([FILL, BARE]), numbers="float"),))

    class Stops:
        def keys(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collector.frames(Stops())  # type: ignore[arg-type]
    (result,) = collector.frames({})
    assert result.equals(frame("userFills", [FILL, BARE]))


def test_provenance_survives_selection():
    fills = frame("userFills", [FILL, BARE])
    assert provenance(fills[fills["oid"] > 0])["operation"] == "userFills"
    with pytest.raises(ValueError, match="has no provenance"):
        provenance(pd.DataFrame())


@pytest.fixture(scope="module")
def service():
    with tk.local(seed=7, size="tiny", default=False) as session:
        yield session


def test_frame_of_answer_has_every_dex(service):
    users = service.world["users"][:3]
    request = {"type": "batchClearinghouseStates", "users": users, "dex": "ALL_DEXES"}
    answer = tk.info(request, session=service)
    states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=service)
    for kind in (request["type"], request):  # the answer shows that it is by dex
        accounts, positions, failed = frame(kind, answer)
        assert accounts.equals(states.accounts)
        assert positions.equals(states.positions)
        assert failed.empty
    assert set(accounts["dex"]) == {"native", "eqx", "pre"}


def test_request_names_user_and_dex(service):
    user = service.world["examples"]["MARKET_MAKER"]
    request = {"type": "clearinghouseState", "user": user, "dex": "eqx"}
    answer = tk.info(request, session=service)
    accounts, positions = frame(request, answer)
    states = tk.batch_clearinghouse_states([user], dex="eqx", session=service)
    assert accounts.equals(states.accounts)
    assert positions.equals(states.positions)
    accounts, positions = frame("clearinghouseState", answer)  # the coins still name the dex
    assert accounts["dex"].tolist() == ["eqx"]
    assert set(positions["dex"]) == {"eqx"}


def test_sub_accounts_do_not_warn(service):
    answers = (
        tk.info({"type": "subAccounts", "user": user}, session=service)
        for user in service.world["users"]
    )
    rows = next(answer for answer in answers if answer)
    accounts = frame("subAccounts", rows)
    states = tk.batch_clearinghouse_states(accounts["sub_account_user"], session=service)
    assert accounts["account_value"].tolist() == states.accounts["account_value"].tolist()
    assert frame("subAccounts", None).empty
    balance = {"coin": "USDC", "token": 0, "total": "7.5", "hold": "0.0", "entryNtl": "0.0"}
    unified = {key: rows[0][key] for key in ("name", "subAccountUser", "master")} | {
        "dexToClearinghouseState": [["", rows[0]["clearinghouseState"]]],
        "spotState": {"balances": [balance]},
    }
    accounts = frame("subAccounts", [unified])
    value = float(rows[0]["clearinghouseState"]["marginSummary"]["accountValue"])
    assert accounts[["account_value", "spot_usdc"]].to_numpy().tolist() == [[value, 7.5]]


def test_spot_market_without_state_stays():
    pairs = [{"name": name, "index": 1, "tokens": [1, 0], "isCanonical": True} for name in "AB"]
    state = dict.fromkeys(("prevDayPx", "dayNtlVlm", "midPx", "circulatingSupply"), "1.0")
    meta = {"tokens": [], "universe": pairs}
    markets, _ = frame("spotMetaAndAssetCtxs", [meta, [state | {"coin": "B", "markPx": "3.0"}]])
    assert markets["name"].tolist() == ["A", "B"]
    assert markets["ctx_mark_px"].fillna(-1).tolist() == [-1, 3.0]


def test_slice_has_id_of_twap(service):
    user = service.world["examples"]["TWAP_USER"]
    request = {"type": "userTwapSliceFills", "user": user}
    slices = tk.info(request, session=service)
    for entry in slices:
        entry["fill"]["twapId"] = None
    assert frame(request, slices)["twap_id"].tolist() == [entry["twapId"] for entry in slices]


def test_addresses_have_one_spelling():
    vault = "0x" + "aB" * 20
    equity = {"vaultAddress": vault, "equity": "2.0", "lockedUntilTimestamp": 0}
    assert frame("userVaultEquities", [equity])["vault_address"].tolist() == [vault.lower()]


def test_null_market_state_is_missing():
    """The states are joined by position, so a null one has a place."""
    names = [{"name": name, "szDecimals": 5, "maxLeverage": 40} for name in ("BTC", "ETH")]
    state = dict.fromkeys(("funding", "openInterest", "prevDayPx", "dayNtlVlm"), "1.5")
    state |= {"oraclePx": "2.0", "markPx": "2.5", "premium": None, "midPx": None, "impactPxs": None}
    perps = frame("metaAndAssetCtxs", [{"universe": names}, [None, state]])
    assert perps["name"].tolist() == ["BTC", "ETH"]
    assert perps["mark_px"].fillna(-1).tolist() == [-1, 2.5]


def test_frames_of_answer_have_names(service):
    frames = frame("spotMeta", tk.info({"type": "spotMeta"}, session=service))
    assert frames._fields == ("pairs", "tokens")
    copied = pickle.loads(pickle.dumps(frames))
    assert copied.tokens["name"].tolist() == frames.tokens["name"].tolist()


def test_full_answer_may_lack_rows():
    reward = {"time": 1_767_225_600_000, "source": "delegation", "totalAmount": "0.5"}
    assert "complete" not in provenance(frame("delegatorRewards", [reward] * 1_999))
    with pytest.warns(HistoryWarning, match="2,000"):
        cut = frame("delegatorRewards", [reward] * 2_000)
    assert provenance(cut)["complete"] == "no"


def test_other_tables_are_refused():
    page = pd.DataFrame({"time": ["07/02/2026 - 09:00:00"], "dir": "Buy", "ntl": 1, "closedPnl": 1})
    with pytest.raises(TypeError, match="web page"):
        frame("userFills", page)
    with pytest.raises(TypeError, match="meta"):
        frame("marginTables", [[52, {"description": "", "marginTiers": []}]])
