"""Money of fills in USD, by hand: several coins, dexes, tokens and signs."""

import pandas as pd
import pytest

from toolkit import prepare
from toolkit.errors import MissingAmounts, MissingColumns, MissingTokens, UnusedPrices
from toolkit.prepare import money

NAN = float("nan")
#  coin        side  px     fee    builder deployer token
ROWS = [
    ("BTC", "B", 100.0, 0.5, 0.125, NAN, "USDC"),
    ("BTC", "A", 100.0, 0.25, 0.0, NAN, "HYPE"),  # without a price
    ("PURR/USDC", "B", 0.5, 3.0, 1.0, NAN, "PURR"),  # in the base token
    ("@107", "A", 4.0, -2.0, 0.5, NAN, "HYPE"),  # a rebate in the base token
    ("@107", "A", 4.0, 0.75, 0.25, NAN, "USDH"),  # in the quote token
    ("@107", "B", 4.0, -0.5, NAN, NAN, "USDH"),  # a rebate in the quote token
    ("flx:TSLA", "B", 200.0, 7.0, 2.0, 1.5, "USDH"),  # in the collateral
    ("#30", "B", 0.25, 0.375, 0.0, NAN, "USDE"),
    ("ETH", "B", 10.0, 0.0625, NAN, NAN, None),  # an old row
    ("@9", "B", 8.0, 0.03125, NAN, NAN, ""),
]
NAMES = ["coin", "side", "px", "fee", "builder_fee", "deployer_fee", "fee_token"]


def fills():
    frame = pd.DataFrame(ROWS, columns=NAMES).astype({"fee_token": "str"})
    return frame.assign(sz=2.0, closed_pnl=1.0)


def places(flags):
    return [place for place, so in enumerate(flags) if so]


def test_amounts_of_each_token_by_hand():
    """A fee in the base token is a part of the cost; a perp's HYPE is worth nothing."""
    made = prepare.fills(fills()).money
    assert made.fee.tolist() == [0.5, 0, 0, 0, 0.75, -0.5, 7, 0.375, 0.0625, 0.03125]
    assert made.builder_fee.tolist() == [0.125, 0, 0, 0, 0.25, 0, 2, 0, 0, 0]
    assert made.deployer_fee.tolist() == [0, 0, 0, 0, 0, 0, 1.5, 0, 0, 0]
    assert made.fee_in_cost.tolist() == [0, 0, 1.5, -8, 0, 0, 0, 0, 0, 0]
    assert places(made.is_at_par) == [3, 4, 5, 6, 7]
    assert places(made.is_unpriced) == [1]
    rebate = fills().assign(coin="PURR/USDH")[3:4]  # its name states the quote token
    assert prepare.fills(pd.concat([fills(), rebate])).tokens_at_par() == ["USDE", "USDH"]


def test_prices_convert_every_amount():
    made = prepare.fills(fills(), prices={"usdh": "0.5", "HYPE": 30}).money
    assert made.fee.tolist() == [0.5, 7.5, 0, 0, 0.375, -0.25, 3.5, 0.375, 0.0625, 0.03125]
    assert made.closed_pnl.tolist() == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 1, 1, 1]
    assert made.volume.tolist() == [200, 200, 1, 4, 4, 4, 200, 0.5, 20, 16]
    assert made.fee_in_cost.tolist() == [0, 0, 1.5, -4, 0, 0, 0, 0, 0, 0]
    assert (places(made.is_at_par), places(made.is_unpriced)) == ([7], [])


def test_prices_are_checked():
    known = money.parse_prices({"Usde": 1.0, "usdh": "0.75", "HYPE": 30, "USDC": 1, "": 1})
    assert known == {"USDE": 1.0, "USDH": 0.75, "HYPE": 30.0}
    assert money.parse_prices({"a": 0.5, "A": "0.50"}) == {"A": 0.5}
    wrong = [
        ({"USDH": 0}, "'USDH'"),
        ({"USDH": "one"}, "'one'"),
        ({"USDH": NAN}, "nan"),
        ({"USDH": float("inf")}, "inf"),
        ({"usdc": 2}, "'usdc'"),
        ({"a": 1, "A": 2}, "'A'"),
    ]
    for prices, named in wrong:
        with pytest.raises(ValueError, match=named):
            money.parse_prices(prices)


def test_collateral_is_stated_by_meta_and_by_fills():
    names = ["BTC", "flx:A", "flx:B", "pre:C", "own:D", "odd:E"]
    meta = pd.DataFrame({"name": names, "collateral_token": [235, 360, 360, 235, 0, None]})
    assert money.collateral_of_dexes(meta) == {"flx": "USDH", "pre": "USDE"}
    assert money.collateral_of_dexes({"a": "B"}) == {"a": "B"}
    with pytest.raises(MissingColumns, match="7 of new:F"):
        money.collateral_of_dexes(pd.DataFrame({"name": ["new:F"], "collateral_token": [7]}))
    rows = pd.DataFrame({"coin": ["flx:A", "flx:B", "BTC", "@1"], "fee_token": ["USDH"] * 4})
    assert money.collateral_in_fills(prepare.fills(rows).table) == {"flx": "USDH"}
    two = rows.assign(fee_token=["USDH", "USDE", "", ""])
    with pytest.raises(MissingColumns, match="flx has fees in"):
        money.collateral_in_fills(prepare.fills(two).table)
    lacks = fills().assign(fee_token=pd.array([None] * len(ROWS), dtype="str"))
    assert places(prepare.fills(lacks, meta=meta).money.is_at_par) == [6]


def test_warnings_of_money():
    table = prepare.fills(fills()).table
    with pytest.warns(UnusedPrices, match="uses ABC"):
        money.warn_unused_prices({"ABC": 1.0, "TET": 1.0}, table, {"tet": "tet"})
    money.warn_unused_prices({"HYPE": 1.0}, table, {})
    silent = prepare.fills(fills().assign(fee_token=pd.array([None] * len(ROWS), dtype="str")))
    with pytest.warns(MissingTokens, match="3 spot buys have"):
        money.warn_missing_tokens(silent.table)
    money.warn_missing_tokens(table)
    lost = fills()
    lost["fee"] = lost["fee"].where(lost.index > 1)
    with pytest.warns(MissingAmounts, match=r"fee is missing in 2\. .*builder_fee and deployer"):
        money.warn_missing_amounts(prepare.fills(lost).table)
    money.warn_missing_amounts(table)
