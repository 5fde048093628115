"""Values of fees and prices of tokens, by hand: several coins, dexes, tokens and signs."""

from decimal import Decimal

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis.common import frame_access, usd_values
from toolkit.errors import MissingAmounts, MissingColumns, MissingFees, MissingTokens, UnusedPrices

NAN = float("nan")
#  coin        side  px     fee    builder deployer token
ROWS = [
    ("BTC", "B", 100.0, 0.5, 0.125, NAN, "USDC"),
    ("BTC", "A", 100.0, 0.25, 0.0, NAN, "HYPE"),  # without a price
    ("PURR/USDC", "B", 0.5, 3.0, 1.0, NAN, "PURR"),  # in the bought token
    ("@107", "B", 4.0, -2.0, 0.5, NAN, "HYPE"),
    ("@107", "A", 4.0, 0.75, 0.25, NAN, "USDH"),  # in the quote token
    ("flx:TSLA", "B", 200.0, 7.0, 2.0, 1.5, "USDH"),  # in the collateral
    ("#30", "B", 0.25, 0.375, 0.0, NAN, "USDE"),
    ("ETH", "B", 10.0, 0.0625, NAN, NAN, None),  # an old row
    ("@9", "B", 8.0, 0.03125, NAN, NAN, ""),
]
NAMES = ["coin", "side", "px", "fee", "builder_fee", "deployer_fee", "fee_token"]


def opened(frame, what="fills"):
    return frame_access.open_frame(frame, what)


@pytest.fixture
def fills():
    return opened(pd.DataFrame(ROWS, columns=NAMES).astype({"fee_token": "str"}))


def values(frame, *expressions):
    made = frame.select(**{f"_{place}": each for place, each in enumerate(expressions)})
    return [made[name].to_list() for name in made.columns]


def test_fees_of_each_token_by_hand(fills):
    """A fee in the bought token is worth the price of its fill; a perp's HYPE is worth nothing."""
    made = usd_values.add_fees_in_usd(fills, "float")
    assert made.columns == [*NAMES, "_fee", "_builder_fee", "_deployer_fee"]
    whole, built, deployed = values(made, *map(nw.col, made.columns[-3:]))
    assert whole == [0.5, 0, 1.5, -8, 0.75, 7, 0.375, 0.0625, 0.03125]
    assert built == [0.125, 0, 0.5, 2, 0.25, 2, 0, 0, 0]
    assert deployed == [0, 0, 0, 0, 0, 1.5, 0, 0, 0]
    plain = [name for name in NAMES if name not in ("fee_token", "deployer_fee")]
    raw = usd_values.add_fees_in_usd(fills.select(plain), "float")
    assert values(raw, nw.col("_fee"))[0] == [row[3] for row in ROWS]


def test_prices_of_tokens_by_hand(fills):
    """USDH is worth 0.75 and HYPE 30; a price of 1 changes nothing."""
    prices = usd_values.parse_prices({"Usde": 1.0, "usdh": "0.75", "HYPE": 30, "USDC": 1, "": 1})
    assert prices == {"USDH": Decimal("0.75"), "HYPE": 30, "USDE": 1}
    made = usd_values.apply_prices(fills, ["fee"], nw.col("fee_token"), prices, "float")
    assert made["fee"].to_list() == [0.5, 7.5, 3, -60, 0.5625, 5.25, 0.375, 0.0625, 0.03125]


def test_wrong_prices_are_refused():
    assert usd_values.parse_prices(None) == {}
    assert usd_values.parse_prices({"a": 0.5, "A": "0.50"}) == {"A": Decimal("0.5")}
    wrong = [{"USDH": 1, "HYPE": price} for price in (0, -1, "x", NAN, "inf", None)]
    wrong += [{"a": 1, "A": 2}, {"usdc": 2}, {"USDC": 2}, {"": 2}]
    for prices in wrong:
        with pytest.raises(ValueError, match=f"^prices: '{list(prices)[-1]}'"):
            usd_values.parse_prices(prices)


def test_collateral_of_dexes_by_hand():
    names = ["BTC", "flx:TSLA", "flx:GOLD", "pre:X", "usd:Y", "new:Z", "tet:Q"]
    tokens = [235, 360, 360, 235, 0, None, 268]
    meta = pd.DataFrame({"name": names, "collateral_token": tokens})
    assert usd_values.dex_tokens(meta) == {"flx": "USDH", "pre": "USDE", "tet": "USDT0"}
    assert usd_values.dex_tokens(None) == {}
    assert usd_values.dex_tokens({"a": "B"}) == {"a": "B"}
    for wrong, named in (
        (pd.DataFrame(), "^meta"),
        (meta.assign(collateral_token=[0, 0, 0, 7, 0, 0, 0]), r"^meta: .* 7 of pre:X .*235 = USDE"),
        (meta[["name"]], "^meta: .*collateral_token"),
    ):
        with pytest.raises(MissingColumns, match=named):
            usd_values.dex_tokens(wrong)


def test_collateral_from_fills_by_hand():
    coins = ["flx:A", "flx:B", "flx:A", "pre:X", "BTC", "@107", "usd:Y"]
    tokens = ["USDH", "USDH", "USDC", "USDE", "HYPE", "HYPE", "USDC"]
    rows = pd.DataFrame({"coin": coins, "fee_token": tokens})
    assert usd_values.dex_tokens_in_fills(opened(rows)) == {"flx": "USDH", "pre": "USDE"}
    assert usd_values.dex_tokens_in_fills(opened(rows[["coin"]])) == {}
    two = rows.assign(fee_token=["USDH", "USDT0", *tokens[2:]])
    with pytest.raises(MissingColumns, match=r"^fills: dex flx .*meta"):
        usd_values.dex_tokens_in_fills(opened(two))


def test_tokens_at_par_by_hand():
    frame = pd.DataFrame(ROWS, columns=NAMES)
    assert usd_values.tokens_at_par(frame) == ["USDE", "USDH"]
    assert usd_values.tokens_at_par(frame.drop(columns="fee_token")) == []


@pytest.mark.filterwarnings("error")
def test_prices_without_effect_are_named(fills):
    prices = dict.fromkeys(("ZZZ", "HYPE", "USDT0", "AAA"), Decimal(2))
    words = "^prices: .* AAA, ZZZ.* HYPE, PURR, USDC, USDE, USDH, USDT0"
    with pytest.warns(UnusedPrices, match=words):
        usd_values.warn_unused_prices(prices, fills, {"tet": "usdt0"})
    for used in ({"HYPE": Decimal(1)}, {}):
        usd_values.warn_unused_prices(used, fills, {})
    bare = opened(pd.DataFrame({"coin": ["BTC"]}))
    with pytest.warns(UnusedPrices, match="HYPE"):
        usd_values.warn_unused_prices({"HYPE": Decimal(1)}, bare, {})


@pytest.mark.filterwarnings("error")
def test_missing_amounts_are_counted_by_column():
    frame = pd.DataFrame({"px": [1.0, NAN, NAN], "sz": 1.0, "closed_pnl": [NAN, 1.0, 1.0]})
    frame = frame.assign(fee=1.0, builder_fee=0.5)
    gone = frame.assign(fee=NAN, deployer_fee=1.0)
    for rows, named, has_parts in (
        (frame, "of 3 rows, px .* 2 and closed_pnl .* 1", False),
        (gone, "builder_fee and deployer_fee", True),
        (gone.drop(columns=["builder_fee", "deployer_fee"]), "fee", False),
    ):
        with pytest.warns(MissingAmounts, match=f"^fills: .*{named}") as caught:
            usd_values.warn_missing_amounts(opened(rows), "fills")
        assert ("its parts" in str(caught[0].message)) == has_parts
    usd_values.warn_missing_amounts(opened(frame.fillna(1.0)), "fills")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("count", "named"), [(1, "1 spot buy has"), (2, "2 spot buys have")])
def test_spot_buys_without_token_are_counted(count, named):
    """A sale, a perp, a fee of 0 and an empty name are none."""
    frame = pd.DataFrame(
        [("@107", "B", 0.5, None)] * count
        + [("PURR/USDC", "A", 1.0, None), ("BTC", "B", 1.0, None), ("@9", "B", 0.0, None)]
        + [("@9", "B", 1.0, ""), ("@9", "B", 1.0, "HYPE")],
        columns=["coin", "side", "fee", "fee_token"],
    )
    with pytest.warns(MissingTokens, match=f"^rows: {named}"):
        usd_values.warn_missing_tokens(opened(frame), "rows")
    for fine in (frame[count:], frame.drop(columns="fee"), frame.drop(columns="fee_token")):
        usd_values.warn_missing_tokens(opened(fine), "rows")
    with pytest.warns(MissingFees, match="^rows: .*builder_fee"):
        usd_values.warn_missing_builder_fees(opened(frame.assign(builder_fee=NAN)), "rows")
    known = frame.assign(builder_fee=[0.0] + [NAN] * (len(frame) - 1))
    usd_values.warn_missing_builder_fees(opened(known), "rows")
