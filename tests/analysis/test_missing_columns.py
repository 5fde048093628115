"""Columns that are missing in every row: no figure comes from them without a word."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import toolkit as tk
from toolkit.errors import MissingColumns, MissingDirections, MissingFees, MissingTokens

TIMES = pd.to_datetime([0, 1_000, 2_000, 4_000], unit="ms", utc=True)


def tape(**changes):
    return pd.DataFrame(
        {
            "coin": "XYZ",
            "px": [10.0, 10.5, 10.0, 11.0],
            "sz": [1.0, 2.0, 3.0, 4.0],
            "side": ["B", "A", "B", "A"],
            "time": TIMES,
            "crossed": pd.array([True, False, True, True], dtype="boolean"),
            "dir": ["Open Long", "Close Long", "Open Long", "Close Long"],
        }
    ).assign(**changes)


NO_FLAG = pd.array([pd.NA] * 4, dtype="boolean")
NO_TEXT = pd.array([None] * 4, dtype="str")


def test_quotes_without_crossed_are_refused():
    with pytest.raises(MissingColumns, match="tape: column crossed is missing in every row"):
        tk.execution.quotes(tape(crossed=NO_FLAG))
    with pytest.raises(MissingColumns, match="crossed"):
        tk.execution.spreads(tape(crossed=NO_FLAG))


def test_quotes_with_one_crossed():
    known = pd.array([True, None, None, None], dtype="boolean")
    assert len(tk.execution.quotes(tape(crossed=known))) == 1


def test_quality_without_dir_warns():
    with pytest.warns(MissingDirections, match="column dir is missing in every row") as warned:
        tk.execution.quotes(tape(dir=NO_TEXT))
    assert len(warned) == 1


def test_liquidations_without_dir_are_refused():
    rows = tape(dir=NO_TEXT, liquidated_user=NO_TEXT)
    with pytest.raises(MissingColumns, match="column dir is missing in every row"):
        tk.liquidations.fills(rows)
    assert len(tk.liquidations.fills(tape(liquidated_user=NO_TEXT))) == 0
    assert len(tk.liquidations.fills(rows.iloc[:0])) == 0


def test_trigger_delay_without_flag_is_refused():
    orders = pd.DataFrame(
        {
            "oid": [1, 1, 2, 2],
            "status": ["open", "triggered", "open", "filled"],
            "is_trigger": NO_FLAG,
            "order_type": "Stop Market",
            "timestamp": TIMES[0],
            "status_timestamp": TIMES,
        }
    )
    with pytest.raises(MissingColumns, match="orders: column is_trigger is missing"):
        tk.orders.trigger_delay(orders)
    some = pd.array([True, True, None, None], dtype="boolean")
    assert tk.orders.trigger_delay(orders.assign(is_trigger=some))["orders"].tolist() == [1]


def chain(coin, **changes):
    """Return two buys, of 4 and of 2, and a sell of 3; the first buy pays a fee of 0.5."""
    return pd.DataFrame(
        {
            "coin": coin,
            "px": [10.0, 12.0, 14.0],
            "sz": [4.0, 2.0, 3.0],
            "side": ["B", "B", "A"],
            "time": TIMES[:3],
            "start_position": [0.0, 4.0, 6.0],
            "closed_pnl": [0.0, 0.0, 10.0],
            "fee": [0.5, 0.0, 0.25],
            "fee_token": pd.array([None, "USDC", "USDC"], dtype="str"),
            "dir": pd.array(["Buy", "Buy", "Sell"], dtype="str"),
        }
    ).assign(**changes)


HELPERS: dict[str, Callable[[Any], Any]] = {
    "attribution": tk.pnl.attribution,
    "audit": lambda fills: tk.pnl.audit(fills, {}),
    "equity": tk.pnl.equity,
    "lots": tk.pnl.lots,
    "positions": lambda fills: tk.pnl.positions(fills, {}),
    "round_trips": tk.pnl.round_trips,
}
NO_WORDS = pd.array([None] * 3, dtype="str")


NUMBERS = ("px", "sz", "start_position", "closed_pnl", "fee")
EXACT = pd.ArrowDtype(pa.decimal128(36, 18))


@pytest.mark.parametrize("dtype", ["float64", EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("name", HELPERS)
def test_spot_buy_without_token_warns(name, dtype):
    fills = chain("@7").astype(dict.fromkeys(NUMBERS, dtype))
    with pytest.warns(MissingTokens, match="1 spot buy has a fee but no fee_token") as warned:
        HELPERS[name](fills)
    assert len(warned) == 1
    assert warned[0].filename == __file__


@pytest.mark.parametrize("coin", ["XYZ", "flx:XYZ", "#70"])
def test_perp_and_outcome_buys_need_no_token(coin):
    tk.pnl.attribution(chain(coin))
    tk.pnl.attribution(chain("@7", fee_token=["HYPE", "USDC", "USDC"]))


def test_token_warning_in_every_engine(engine):
    with pytest.warns(MissingTokens) as warned:
        tk.pnl.attribution(engine.give(chain("@7")))
    assert len(warned) == 1


@pytest.mark.parametrize("name", sorted(set(HELPERS) - {"equity"}))
def test_outcomes_without_dir_warn(name):
    with pytest.warns(MissingDirections, match="column dir is missing in every row") as warned:
        HELPERS[name](chain("#70", dir=NO_WORDS))
    assert len(warned) == 1


def test_only_trips_of_perps_need_dir():
    fills = chain("XYZ", dir=NO_WORDS)
    tk.pnl.attribution(fills)
    tk.pnl.positions(fills, {})
    with pytest.warns(MissingDirections, match="backstop liquidations"):
        tk.pnl.round_trips(fills)


ORDERS = pd.DataFrame(
    {
        "oid": [1, 2, 3, 4],
        "status": ["filled", "canceled", "canceled", "open"],
        "limit_px": [10.0, 20.0, None, 5.0],
        "sz": [0.0, 3.0, 1.0, None],
        "orig_sz": [5.0, 4.0, 2.0, 2.0],
        "timestamp": TIMES[0],
        "status_timestamp": TIMES,
        "order_type": pd.array([None] * 4, dtype="str"),
        "tif": pd.array([None, None, "Alo", None], dtype="str"),
    }
)


@pytest.mark.parametrize("name", ["limit_px", "orig_sz", "sz"])
def test_fill_ratio_without_amounts_is_refused(name, engine):
    lacking = ORDERS.assign(**{name: pd.Series([None] * 4, dtype="float64")})
    with pytest.raises(MissingColumns, match=f"orders: column {name} is missing in every row"):
        tk.orders.fill_ratio(engine.give(lacking))


def test_orders_without_amount_are_unsized(engine):
    (row,) = engine.take(tk.orders.fill_ratio(engine.give(ORDERS)))
    assert (row["orders"], row["unsized"]) == (4, 2)
    assert (row["asked_usd"], row["filled_usd"]) == (130.0, 70.0)


def test_fill_times_without_placing_are_refused():
    never = pd.Series([pd.NaT] * 4, dtype="datetime64[ms, UTC]")
    with pytest.raises(MissingColumns, match="orders: column timestamp is missing in every row"):
        tk.orders.time_to_fill(ORDERS.assign(timestamp=never))


def test_fill_times_without_kinds_warn():
    assert tk.orders.time_to_fill(ORDERS).n == 4
    with pytest.warns(
        MissingDirections, match="order_type and tif are missing in every row"
    ) as warned:
        tk.orders.time_to_fill(ORDERS.assign(tif=NO_TEXT))
    assert len(warned) == 1


def routed(**changes):
    names = {"user": ["0xa", "0xa", "0xb"], "oid": [1, 2, 3], "builder": "0xc"}
    return chain("XYZ", **names, builder_fee=[0.1, 0.0, 0.2]).assign(**changes)


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "revenue": lambda fills: tk.builders.revenue(fills, "0xc"),
    "cohorts": lambda fills: tk.builders.cohorts(fills, "0xc"),
    "lifetime_value": lambda fills: tk.builders.lifetime_value(fills, "0xc", until="1970-02-01"),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_builders_without_builder_fee_warn(name):
    fills = routed(builder_fee=pd.Series([None] * 3, dtype="float64"))
    with pytest.warns(MissingFees, match="builder_fee is missing on every fill") as warned:
        BUILDERS[name](fills)
    assert len(warned) == 1


@pytest.mark.parametrize("name", BUILDERS)
def test_builders_without_fee_token_warn(name):
    with pytest.warns(MissingTokens) as warned:
        BUILDERS[name](routed(coin="@7"))
    assert len(warned) == 1


def test_builder_fee_in_unpriced_token_counts():
    fills = routed(fee=0.0, fee_token="HYPE")
    assert tk.builders.revenue(fills)["unpriced"].tolist() == [2]


def test_builders_without_user_are_refused():
    fills = routed(user=NO_WORDS)
    for helper in (tk.builders.cohorts, tk.builders.attach_rate):
        with pytest.raises(MissingColumns, match="column user is missing in every row"):
            helper(fills, "0xc")
    with pytest.raises(MissingColumns, match="approved: column user is missing in every row"):
        tk.builders.approval_spans(fills)


def test_routing_without_dir_warns():
    with pytest.warns(MissingDirections, match="column dir is missing in every row"):
        tk.builders.routing(routed(dir=NO_WORDS), "0xc")


RUNNING = ("audit", "lots", "positions", "round_trips")


@pytest.mark.parametrize("name", RUNNING)
def test_missing_position_names_frame(name):
    fills = chain("XYZ", start_position=[0.0, None, 6.0])
    said = "fills: column start_position is missing in 1 of 3 rows, and missing is not 0. Remove"
    with pytest.raises(MissingColumns, match=said):
        HELPERS[name](fills)
    with pytest.raises(MissingColumns, match="column closed_pnl is missing or infinite in 1 of 3"):
        HELPERS[name](chain("XYZ", closed_pnl=[0.0, float("inf"), 0.0]))


def test_messages_hide_internal_columns():
    paid = pd.DataFrame({"coin": "XYZ", "time": TIMES[:1], "usdc": [1.0]})
    with pytest.raises(MissingColumns) as raised:
        tk.pnl.attribution(routed(user="0xa"), paid, by="user")
    assert "lacks the column user. It has coin, time, usdc" in str(raised.value)


@pytest.mark.parametrize(
    ("call", "function"),
    [
        (tk.pnl.attribution, "Fetch fills with tk.user_fills_by_time"),
        (tk.funding.annualised, "Fetch funding with tk.builder_approved_funding_by_time"),
        (tk.slippage.fit, "Fetch samples with tk.slippage_history"),
        (tk.ledger.sums, "Fetch ledger with tk.user_non_funding_ledger_updates"),
        (tk.accounts.values, "Fetch snapshot with tk.account_value_snapshots"),
    ],
)
def test_other_frame_names_fetch_function(call, function):
    with pytest.raises(MissingColumns, match=rf"\. {function}$"):
        call(pd.DataFrame({"name": ["BTC"], "sz_decimals": [5]}))


def test_spreads_of_one_account_warn():
    fills = tape(time=TIMES[:1].repeat(4) + pd.to_timedelta([0, 1, 2, 3], unit="h"))
    with pytest.warns(UserWarning, match="these 4 trades show no spread") as warned:
        spreads = tk.execution.spreads(fills)
    assert len(warned) == 1
    assert spreads.params["estimate"].isna().all()
