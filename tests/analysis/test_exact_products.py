"""Exact prices with many decimals: the amounts of each helper, by hand and on each engine."""

from decimal import Decimal

import pandas as pd
import pytest

from tests.engines import ENGINES, Engine
from toolkit.builders import revenue
from toolkit.pnl import attribution, carried_back, equity, round_trips

from .examples import EXACT, HOUR, ME, MONDAY, times

PRICE = "0.998512345678"
FINE = "100.123456789012345678"
"""A price of aggregated fills: a mean with 18 decimals."""


def exact_rows(**columns):
    """Return rows with exact numbers; texts that are numbers become exact."""
    made = {}
    for name, values in columns.items():
        is_number = name in ("px", "sz", "closed_pnl", "fee", "builder_fee", "start_position")
        made[name] = pd.array(
            [Decimal(value) for value in values] if is_number else values,
            dtype=EXACT if is_number else "str",
        )
    return pd.DataFrame(made).assign(time=times(MONDAY + row for row in range(len(made["coin"]))))


def usdh_fills():
    """A position in a dex with collateral USDH is closed: 100 USDH, less a fee of 0.25 USDH."""
    return exact_rows(
        coin=["flx:X"], px=["10.3"], sz=["3"], side=["A"], start_position=["3"],
        closed_pnl=["100"], fee=["0.25"], fee_token=["USDH"],
    )  # fmt: skip


def hype_fills():
    """A spot buy pays 0.0021 HYPE, 0.001 of them to a builder."""
    return exact_rows(
        coin=["@107"], px=["10.066666666666667"], sz=["3"], side=["B"], start_position=["0"],
        closed_pnl=["0"], fee=["0.0021"], builder_fee=["0.001"], fee_token=["HYPE"],
        builder=["0xb"],
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("price", [PRICE, Decimal(PRICE), float(PRICE)])
def test_price_of_collateral_is_not_rounded(engine, price):
    """100 * 0.998512345678 is 99.8512345678; a quarter of a token is 0.2496280864195."""
    native = Engine(engine)
    rows = native.give(usdh_fills())
    row = native.take(attribution(rows, prices={"USDH": price}))[0]
    assert row["closed_pnl"] == Decimal("99.8512345678")
    assert row["trading_fee"] == Decimal("-0.2496280864195")
    assert row["net"] == Decimal("99.6016064813805")
    trip = native.take(round_trips(rows, prices={"USDH": price}))[0]
    assert (trip["gross"], trip["net"]) == (row["closed_pnl"], row["net"])
    point = native.take(equity(rows, prices={"USDH": price}))[0]
    assert point["realised"] == row["net"]


@pytest.mark.parametrize("engine", ENGINES)
def test_fee_in_token_is_not_rounded(engine):
    """0.0021 * 10.066666666666667 is 0.0211400000000000007: only the 19th decimal is rounded."""
    native = Engine(engine)
    rows = native.give(hype_fills())
    assert native.take(attribution(rows))[0]["fees_in_cost"] == Decimal("-0.021140000000000001")
    assert native.take(revenue(rows))[0]["revenue"] == Decimal("0.010066666666666667")


@pytest.mark.parametrize("engine", ENGINES)
def test_funding_in_token_is_not_rounded(engine):
    native = Engine(engine)
    paid = pd.DataFrame(
        {"coin": ["flx:X"], "usdc": [Decimal("-1.123456789012")], "time": times([MONDAY])}
    ).astype({"usdc": EXACT, "coin": "str"})
    given = (native.give(usdh_fills()), native.give(paid))
    row = native.take(attribution(*given, prices={"USDH": "0.5"}))[0]
    assert row["funding"] == Decimal("-0.561728394506")


def test_equity_with_fine_marks_by_hand():
    """0.73 * 0.623456789012345678 has 20 decimals, and so has 0.73 * 100.123456789012345678."""
    fills = exact_rows(
        coin=["BTC"], px=["99.5"], sz=["0.73"], side=["B"], start_position=["0"],
        closed_pnl=["0"], fee=["0"],
    )  # fmt: skip
    marks = pd.DataFrame({"time": times([MONDAY + HOUR]), "name": ["BTC"], "mark_px": [FINE]})
    marks["mark_px"] = pd.array([Decimal(FINE)], dtype=EXACT)
    row = equity(fills, marks=marks, sz_decimals={"BTC": 2}).iloc[0]
    assert row["unrealised"] == Decimal("0.455123455979012345")
    assert row["long"] == Decimal("73.090123455979012345")


def test_carried_back_with_fine_price_by_hand():
    """0.75 BTC at 100.123456789012345678 cost 75: 0.0925925917592592585 more after an hour."""
    fills = exact_rows(
        coin=["BTC"], px=[FINE], sz=["0.75"], side=["B"], start_position=["0"],
        closed_pnl=["0"], fee=["0"],
    )  # fmt: skip
    stated = {"szi": "0.75", "position_value": "75.2", "unrealized_pnl": "0.2"}
    held = pd.DataFrame({name: pd.array([Decimal(text)], EXACT) for name, text in stated.items()})
    worth = pd.DataFrame({"account_value": pd.array([Decimal(90)], EXACT), "user": [ME]})
    moved = pd.DataFrame({"time": times([]), "type": pd.array([], dtype="str")})
    curve = carried_back(
        worth.assign(time=times([MONDAY + 2 * HOUR])),
        held.assign(user=ME, coin="BTC"),
        fills,
        None,
        moved,
    )
    assert curve["unrealised"].tolist() == [0, Decimal("0.092592591759259259"), Decimal("0.2")]
    assert curve["equity"].tolist()[1] == Decimal("89.892592591759259259")
