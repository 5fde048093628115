"""Fields of live answers. docs/live_service.md, section 1."""

import json
import warnings
from pathlib import Path

import pytest

import toolkit as tk
from toolkit.contract.field_deviations import forget_deviations
from toolkit.errors import UnknownField

OPEN_ORDER = {
    **{"coin": "BTC", "side": "B", "limitPx": "1.5", "sz": "2.0", "origSz": "2.0"},
    **{"oid": 1, "timestamp": 1_750_000_000_000},
}
USER = "0x" + "a" * 40
RECORDINGS = Path(__file__).parents[2].parent / "shared" / "recordings"


@pytest.fixture(autouse=True)
def fresh_warnings():
    """Reset the warnings and the learnt field names for each test."""
    forget_deviations()
    yield
    forget_deviations()


@pytest.fixture
def served(tmp_path):
    """Return a function that opens a session over one recorded answer."""

    def session(request, response):
        text = json.dumps({"request": request, "status": 200, "response": response})
        (tmp_path / "answer.json").write_text(text)
        return tk.local(recordings=tmp_path, default=False)

    return session


def batch_of(state):
    return {"successful_states": [[USER, state]], "failed_wallets": []}


def test_present_state_is_complete(examples):
    """The example has no maxTradeSzs and has withdrawable at the top level, without a warning."""
    accounts, positions, failed = tk.frame(
        "batchClearinghouseStates", batch_of(examples["1_state"]), numbers="text"
    )
    assert len(failed) == 0
    (account,) = accounts.to_dict("records")
    assert account["withdrawable"] == "75.781884"
    assert account["cross_maintenance_margin_used"] == "0.0"
    (position,) = positions.to_dict("records")
    assert position["max_leverage"] == 10
    assert position["leverage_raw_usd"] == "-68.126246"
    assert position["cum_funding_all_time"] == "4.966798"
    assert position["cum_funding_since_open"] == position["cum_funding_since_change"] == "0.0"
    assert positions["max_trade_szs"].isna().all()


def test_meta_and_margin_tables_become_frames(examples):
    answer = examples["4_meta"]
    frame = tk.frame("meta", answer)
    assert frame["collateral_token"].tolist() == [0, 0]
    assert frame["margin_table_id"].tolist() == [52, 3]
    assert frame["only_isolated"].tolist() == [False, True]
    assert frame["is_delisted"].tolist() == [False, True]
    assert frame["margin_mode"].fillna("").tolist() == ["", "strictIsolated"]
    tiers = tk.frame("marginTables", answer)
    assert tiers["margin_table_id"].tolist() == [52, 52, 3]
    assert tiers["tier"].tolist() == [0, 1, 0]
    assert tiers["lower_bound"].tolist() == [0.0, 3_000_000.0, 0.0]
    assert tiers["max_leverage"].tolist() == [10, 5, 3]


def test_flags_are_never_missing():
    """A flag is true or absent, and `meta[~meta["is_delisted"]]` has to keep the others."""
    asset = {"name": "BTC", "szDecimals": 5, "maxLeverage": 40}
    for wire, name in (("isDelisted", "is_delisted"), ("onlyIsolated", "only_isolated")):
        rows = [asset, *(asset | {wire: value} for value in (None, False, True))]
        flags = tk.frame("meta", {"universe": rows})[name]
        assert flags.dtype == bool
        assert flags.tolist() == [False, False, False, True]
    assert tk.frame("openOrders", [OPEN_ORDER])["reduce_only"].tolist() == [False]


def test_perps_have_dex_fields():
    """The fields of an asset override those of its dex."""
    asset = {"name": "flx:OIL", "szDecimals": 2, "maxLeverage": 20, "growthMode": "enabled"}
    changed = "2026-01-02T03:04:05"
    own = {"name": "flx:TSLA", "deployerFeeScale": "0.25", "lastGrowthModeChangeTime": changed}
    answer = {"universe": [asset, asset | own], "collateralToken": 360, "deployerFeeScale": "1.5"}
    frame = tk.frame("meta", answer)
    assert frame["collateral_token"].tolist() == [360, 360]
    assert frame["deployer_fee_scale"].tolist() == [1.5, 0.25]
    assert frame["growth_mode"].tolist() == ["enabled", "enabled"]
    assert frame["last_growth_mode_change_time"].dt.hour.fillna(-1).tolist() == [-1, 3]


def test_liquidation_of_fill_becomes_columns(examples):
    rows = examples["2_liquidation_fills"]
    rows.append(rows[0] | {"liquidationMarkPx": "29.5", "feeTrialEscrow": "0.01"})
    rows.append(rows[0] | {"liquidation": None})
    rows.append(rows[1] | {"liquidation": {"markPx": "7.5", "method": "backstop"}})
    frame = tk.frame("userFills", rows)
    victim = rows[1]["liquidation"]["liquidatedUser"]
    assert frame["liquidated_user"].fillna("").tolist() == ["", victim, victim, "", "", ""]
    assert frame["liquidation_mark_px"].fillna(0).tolist() == [0, 21.193, 21.193, 29.5, 0, 7.5]
    methods = frame["liquidation_method"].fillna("").tolist()
    assert methods == ["", "market", "market", "", "", "backstop"]
    assert frame["fee_trial_escrow"].fillna(0).tolist() == [0, 0, 0, 0.01, 0, 0]


def fills_with(examples, *extras):
    row = examples["6_fee_token"][0]
    return [row | {"time": row["time"] + at, "oid": at} | more for at, more in enumerate(extras)]


def test_unknown_fields_become_text_columns(examples):
    rows = fills_with(
        examples,
        {"newField": "text", "deep": {"newField": [1.50, None]}},
        {},
        {"newField": 7, "sz_": True},
        {"newField": None},
    )
    with pytest.warns(UnknownField) as caught:
        frame = tk.frame("userFills", rows, extra="keep")
    assert len(caught) == 3  # one for each field
    known = tk.frame("userFills", rows)
    assert list(frame.columns) == [*known.columns, "new_field", "deep", "sz_2"]
    assert frame["new_field"].fillna("-").tolist() == ["text", "-", "7", "-"]
    assert frame["deep"].fillna("-").tolist() == ['{"newField":[1.5,null]}', "-", "-", "-"]
    assert frame["sz_2"].fillna("-").tolist() == ["-", "-", "true", "-"]
    assert frame[known.columns].equals(known)


def test_nested_unknown_fields_have_names():
    """Those in the lists of a cell become one list; a row without the field has a null there."""
    delta = {"type": "funding", "coin": "BTC", "usdc": "1", "szi": "2", "fundingRate": "0.1"}
    positions = [{"coin": "BTC", "szi": "1.0"}, {"coin": "ETH", "szi": "-2.0", "cause": "y"}]
    liquidation = {"type": "liquidation", "liquidatedPositions": positions}
    order = OPEN_ORDER | {"orderType": "Limit", "isTrigger": False, "children": []}
    children = [order | {"newField": "x"}, order, order | {"newField": [1], "other": 5}]
    event = {"txIndex": 1, "status": "open", "statusTimestamp": 1}
    event |= {"order": order | {"children": children}}
    names = ("order_children_new_field", "order_children_other")
    texts = dict(zip(names, ('["x", null, [1]]', "[null, null, 5]"), strict=True))
    place = {"time": 1, "hash": "0x0"}
    venues = [["HlPerp", {"newField": "x"}], ["BinPerp", None]]
    for operation, named, row, wanted in (
        ("predictedFundings", "newField", ["BTC", venues], {"new_field": "x"}),
        (
            "builderApprovedFundingByTime",
            "delta.novelty",
            place | {"user": USER, "novelty": 1, "delta": delta | {"novelty": 2}},
            {"novelty": "1", "delta_novelty": "2"},
        ),
        (
            "userNonFundingLedgerUpdates",
            "delta.liquidatedPositions.cause",
            place | {"delta": liquidation},
            {"delta_liquidated_positions_cause": '[null, "y"]'},
        ),
        ("historicalOrders", "order.children.newField", event, texts),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kept, dropped = (tk.frame(operation, [row], extra=e) for e in ("keep", "drop"))
        assert any(named in str(warning.message) for warning in caught), named
        assert kept[list(wanted)].iloc[0].to_dict() == wanted
        assert list(kept.columns) == [*dropped.columns, *wanted]


def test_recorded_unknown_fields_are_served(examples, served):
    """They come only on the pages on which they were recorded."""
    rows = fills_with(examples, {}, {}, {"newField": "x"}, {}, {"other": [2, 3]})
    session = served({"type": "userFills", "user": USER}, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownField)
        kept = tk.user_fills_by_time(USER, 0, page_size=2, extra="keep", session=session)
        dropped = tk.user_fills_by_time(USER, 0, page_size=2, session=session)
        several = tk.many(tk.user_fills_by_time, [USER], start=0, extra="keep", session=session)
        pages = list(tk.pages(tk.user_fills_by_time, USER, 0, extra="keep", session=session))
        raw = tk.raw(tk.user_fills_by_time, USER, 0, session=session)
    assert kept["new_field"].fillna("-").tolist() == ["-", "-", "x", "-", "-"]
    assert kept["other"].fillna("-").tolist() == ["-", "-", "-", "-", "[2,3]"]
    assert list(kept.columns)[:-2] == list(dropped.columns)
    assert [str(dtype) for dtype in kept.dtypes.iloc[-2:]] == ["str", "str"]
    assert several["new_field"].fillna("-").tolist() == ["-", "-", "x", "-", "-"]
    assert [cell for page in pages for cell in page["other"].dropna()] == ["[2,3]"]
    assert raw[2]["newField"] == "x"


def test_concat_joins_unknown_fields(examples, served):
    rows = fills_with(examples, {"newField": "x"}, {}, {"other": 5})
    session = served({"type": "userFills", "user": USER}, rows)
    middle = rows[1]["time"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [
            tk.user_fills_by_time(USER, start, end, extra="keep", session=session)
            for start, end in ((0, middle), (middle + 1, rows[2]["time"]))
        ]
        whole = tk.concat(parts)
    assert whole["new_field"].fillna("-").tolist() == ["x", "-", "-"]
    assert whole["other"].fillna("-").tolist() == ["-", "-", "5"]


def test_only_64_unknown_fields_are_kept(examples):
    """A hostile service sends different names in each row: only the first few are learnt."""
    rows = fills_with(examples, *({f"name{at}": at} for at in range(500)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = tk.frame("userFills", rows, extra="keep")
        tk.frame("userFills", [row | {"another": 1} for row in rows])
    assert len(frame) == 500
    extra = [name for name in frame.columns if name.startswith("name")]
    assert len(extra) == 64
    assert len(caught) == 65
    assert "too many" in str(caught[-1].message)


@pytest.mark.skipif(not RECORDINGS.exists(), reason="NOT CHECKED: no recordings beside the project")
def test_recordings_give_no_warning():
    session = tk.local(recordings=RECORDINGS, default=False)
    builder = session.world["builders"][0]
    funding = tk.builder_approved_funding_by_time(builder, 0, session=session)
    assert funding["n_samples"].value_counts().to_dict() == {3: 203, 1: 15}
    for user in session.world["users"]:
        tk.batch_clearinghouse_states([user], session=session)
        tk.historical_orders(user, session=session)
    assert tk.meta(session=session)["only_isolated"].dtype == bool
