"""Columns that are missing in every row: no figure comes from them without a word."""

from functools import partial

import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import MissingColumns, MissingDirections, MissingFees, MissingTokens

from . import test_lots

TIMES = pd.to_datetime([0, 1_000, 2_000, 4_000], unit="ms", utc=True)
HOURS = TIMES[0] + pd.to_timedelta(range(4), unit="h")
NO_FLAG = pd.array([pd.NA] * 4, dtype="boolean")
NO_TEXT, NO_WORDS = (pd.array([None] * count, dtype="str") for count in (4, 3))
NO_NUMBER = float("nan")


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


def chain(coin, **changes):
    """Return two buys, of 4 and of 2, and a sell of 3; the first buy pays a fee of 0.5."""
    paid = {"closed_pnl": [0.0, 0.0, 10.0], "fee": [0.5, 0.0, 0.25], "time": TIMES[:3]}
    paid["fee_token"] = pd.array([None, "USDC", "USDC"], dtype="str")
    paid["dir"] = pd.array(["Buy", "Buy", "Sell"], dtype="str")
    rows = [("B", 4, 10.0), ("B", 2, 12.0), ("A", 3, 14.0)]
    return test_lots.chain(rows, coin=coin, **(paid | changes))


def routed(**changes):
    names = {"user": ["0xa", "0xa", "0xb"], "oid": [1, 2, 3], "builder": "0xc"}
    return chain("XYZ", **names, builder_fee=[0.1, 0.0, 0.2]).assign(**changes)


ORDERS = pd.DataFrame(
    {
        "oid": [1, 2, 3, 4],
        "status": ["filled", "canceled", "canceled", "open"],
        "limit_px": [10.0, 20.0, None, 5.0],
        "sz": [0.0, 3.0, 1.0, None],
        "orig_sz": [5.0, 4.0, 2.0, 2.0],
        "timestamp": TIMES[0],
        "status_timestamp": TIMES,
        "order_type": NO_TEXT,
        "tif": pd.array([None, None, "Alo", None], dtype="str"),
    }
)
TRIGGERED = ORDERS.assign(
    oid=[1, 1, 2, 2], status=["open", "triggered", "open", "filled"], is_trigger=NO_FLAG
)
NEVER = pd.Series([pd.NaT] * 4, dtype="datetime64[ms, UTC]")
RUNNING = {
    "audit": lambda fills: tk.pnl.audit(fills, {}),
    "lots": tk.pnl.lots,
    "positions": lambda fills: tk.pnl.positions(fills, {}),
    "round_trips": tk.pnl.round_trips,
}
HELPERS = RUNNING | {"attribution": tk.pnl.attribution, "equity": tk.pnl.equity}
BUILDERS = {
    "revenue": lambda fills: tk.builders.revenue(fills, "0xc"),
    "cohorts": lambda fills: tk.builders.cohorts(fills, "0xc"),
    "lifetime_value": lambda fills: tk.builders.lifetime_value(fills, "0xc", until="1970-02-01"),
}
PAID = pd.DataFrame({"coin": "XYZ", "time": TIMES[:1], "usdc": [1.0]})
BY_USER = partial(tk.pnl.attribution, funding=PAID, by="user")
OTHER = pd.DataFrame({"name": ["BTC"], "sz_decimals": [5]})
REFUSED = [  # call, frame, what the message names
    (tk.execution.quotes, tape(crossed=NO_FLAG), "^tape: .*crossed"),
    (tk.execution.spreads, tape(crossed=NO_FLAG), "crossed"),
    (tk.liquidations.fills, tape(dir=NO_TEXT, liquidated_user=NO_TEXT), "column dir"),
    (tk.orders.trigger_delay, TRIGGERED, "^orders: .*is_trigger"),
    (tk.orders.time_to_fill, ORDERS.assign(timestamp=NEVER), "^orders: .*timestamp"),
    *(
        (tk.orders.fill_ratio, ORDERS.assign(**{name: NO_NUMBER}), f"^orders: column {name}")
        for name in ("limit_px", "orig_sz", "sz")
    ),
    (partial(tk.builders.cohorts, builder="0xc"), routed(user=NO_WORDS), "column user"),
    (partial(tk.builders.attach_rate, builder="0xc"), routed(user=NO_WORDS), "column user"),
    (tk.builders.approval_spans, routed(user=NO_WORDS), "^approved: column user"),
    # The columns are those of the caller's frame, not our own.
    (BY_USER, routed(user="0xa"), r"user\. It has coin, time, usdc"),
    *(
        (call, chain("XYZ", **{name: [0.0, value, 6.0]}), f"^fills: column {name} {what}")
        for call in RUNNING.values()
        for name, value, what in (
            ("start_position", None, ".*1 of 3"),
            ("closed_pnl", float("inf"), "is infinite in 1 row"),
            ("time", float("inf"), "is infinite in 1 row"),
        )
        if (call, name) != (tk.pnl.lots, "closed_pnl")  # lots do not depend on it
    ),
    # The function that fetches the wanted frame.
    (tk.pnl.attribution, OTHER, r"\. Fetch fills with tk.user_fills_by_time$"),
    (tk.funding.annualised, OTHER, "funding with tk.builder_approved_funding_by_time$"),
    (tk.slippage.fit, OTHER, "samples with tk.slippage_history$"),
    (tk.ledger.sums, OTHER, "ledger with tk.user_non_funding_ledger_updates$"),
    (tk.accounts.values, OTHER, "snapshot with tk.account_value_snapshots$"),
]
WARNED = [  # call, frame, warning, what it names
    (tk.execution.quotes, tape(dir=NO_TEXT), MissingDirections, "dir"),
    *((call, chain("@7"), MissingTokens, "1 spot buy") for call in HELPERS.values()),
    *(
        (call, chain("#70", dir=NO_WORDS), MissingDirections, "dir")
        for name, call in HELPERS.items()
        if name != "equity"
    ),
    (tk.pnl.round_trips, chain("XYZ", dir=NO_WORDS), MissingDirections, "backstop"),
    (tk.orders.time_to_fill, ORDERS.assign(tif=NO_TEXT), MissingDirections, "tif"),
    *((call, routed(builder_fee=NO_NUMBER), MissingFees, "fee") for call in BUILDERS.values()),
    *((call, routed(coin="@7"), MissingTokens, "token") for call in BUILDERS.values()),
    (partial(tk.builders.routing, builder="0xc"), routed(dir=NO_WORDS), MissingDirections, "dir"),
    (tk.execution.spreads, tape(time=HOURS), UserWarning, "4 trades"),
]


def test_missing_columns_are_refused():
    for call, frame, named in REFUSED:
        with pytest.raises(MissingColumns, match=named):
            call(frame)


def test_missing_columns_warn_once():
    for call, frame, category, named in WARNED:
        with pytest.warns(category, match=named) as warned:
            call(frame)
        assert [warning.filename for warning in warned] == [__file__], (call, named)


def test_columns_that_do_not_count_may_be_missing():
    """Warnings are errors here."""
    some = pd.array([True, None, None, None], dtype="boolean")
    assert len(tk.execution.quotes(tape(crossed=some))) == 1
    silent = tape(dir=NO_TEXT, liquidated_user=NO_TEXT)
    assert len(tk.liquidations.fills(silent.iloc[:0])) == 0
    assert len(tk.liquidations.fills(silent.assign(dir="Open Long"))) == 0
    some = pd.array([True, True, None, None], dtype="boolean")
    assert tk.orders.trigger_delay(TRIGGERED.assign(is_trigger=some))["orders"].tolist() == [1]
    for coin in ("XYZ", "flx:XYZ", "#70"):  # their buys need no token
        tk.pnl.attribution(chain(coin))
    tk.pnl.attribution(chain("@7", fee_token=["HYPE", "USDC", "USDC"]))
    tk.pnl.attribution(chain("XYZ", dir=NO_WORDS))
    tk.pnl.positions(chain("XYZ", dir=NO_WORDS), {})
    assert tk.orders.time_to_fill(ORDERS).n == 4
    row = tk.orders.fill_ratio(ORDERS).iloc[0]
    assert row[["orders", "unsized", "asked_usd", "filled_usd"]].tolist() == [4, 2, 130, 70]
    unpriced = routed(fee=0.0, fee_token="HYPE")
    assert tk.builders.revenue(unpriced)["unpriced"].tolist() == [2]
