"""Values of fees and prices of tokens, by hand: several coins, dexes, tokens and signs."""

from decimal import Decimal, localcontext

import narwhals as nw
import pandas as pd
import polars as pl
import pytest

from tests.engines import ENGINES, Engine
from toolkit.analysis.common import exact_products, frame_access, usd_values
from toolkit.errors import MissingAmounts, MissingColumns, MissingFees, MissingTokens, UnusedPrices

from .examples import EXACT, as_numbers

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


def fills(kind="float"):
    frame = as_numbers(pd.DataFrame(ROWS, columns=NAMES), kind)
    return frame_access.open_frame(
        frame.assign(fee_token=frame["fee_token"].astype("str")), "fills"
    )


def values(frame, *expressions):
    named = {f"_{place}": each for place, each in enumerate(expressions)}
    made = frame.select(**named).lazy().collect("pyarrow").to_dict(as_series=False)
    return [made[name] for name in named]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_fees_of_each_token_by_hand(kind):
    """A fee in the bought token is worth the price of its fill; a perp's HYPE is worth nothing."""
    made = usd_values.add_fees_in_usd(fills(kind), kind)
    assert made.columns == [*NAMES, "_fee", "_builder_fee", "_deployer_fee"]
    whole, built, deployed = values(made, *map(nw.col, made.columns[-3:]))
    assert whole == [0.5, 0, 1.5, -8, 0.75, 7, 0.375, 0.0625, 0.03125]
    assert built == [0.125, 0, 0.5, 2, 0.25, 2, 0, 0, 0]
    assert deployed == [0, 0, 0, 0, 0, 1.5, 0, 0, 0]
    assert {type(value) for value in whole} == {float if kind == "float" else Decimal}
    plain = [name for name in NAMES if name not in ("fee_token", "deployer_fee")]
    raw = usd_values.add_fees_in_usd(fills(kind).select(plain), kind)
    assert values(raw, nw.col("_fee"))[0] == [row[3] for row in ROWS]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_kinds_of_tokens_by_hand(kind):
    cash, bought, par = values(
        fills(kind), usd_values.is_cash(), usd_values.is_in_bought_token(), usd_values.is_at_par()
    )
    places = [[place for place, is_so in enumerate(each) if is_so] for each in (cash, bought, par)]
    assert places == [[0, 7, 8], [2, 3], [4, 5, 6]]
    lost, built, no_part = values(
        fills(kind),
        usd_values.is_unpriced_fee(NAMES, kind),
        usd_values.is_unpriced_fee(NAMES, kind, "builder_fee"),
        usd_values.is_unpriced_fee([name for name in NAMES if name != "fee_token"], kind),
    )
    assert lost == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert built == [0] * 9
    assert set(no_part) == {0}


@pytest.mark.parametrize("engine", ENGINES)
def test_products_keep_eighteen_decimals(engine):
    """Polars cut them to ten."""
    fee, px = Decimal("-123456789.0123456789"), Decimal("12345678.87654321")
    rows = pd.DataFrame(
        {"coin": "@107", "side": "B", "fee_token": "HYPE", "fee": [fee, Decimal(7)],
         "px": [px, Decimal("0.00000001")]}
    ).astype({"fee": EXACT, "px": EXACT})  # fmt: skip
    frame = frame_access.open_frame(Engine(engine).give(rows), "fills")
    prices = {"PURR": Decimal(3), "HYPE": Decimal("654321.87654321")}
    frame = usd_values.add_fees_in_usd(frame, "exact")
    frame = usd_values.apply_prices(frame, ["fee"], nw.col("fee_token"), prices, "exact")
    made, changed = values(frame, nw.col("_fee"), nw.col("fee"))
    with localcontext(prec=60):
        assert made == [fee * px, Decimal("0.00000007")]
        assert changed == [fee * prices["HYPE"], 7 * prices["HYPE"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_products_are_rounded_half_up(engine):
    """A product of two numbers with 18 decimals has 36: only the last step rounds."""
    fees = ["100", "-7.5", "2.000000000000000003", "-2.000000000000000003", "0.5", "-0.5"]
    pxs = ["0.998512345678", "0.333333333333333333", "1.5", "1.5", "1E-18", "1E-18"]
    rows = pd.DataFrame({"fee": [*map(Decimal, fees)], "px": [*map(Decimal, pxs)]}).astype(EXACT)
    frame = frame_access.open_frame(Engine(engine).give(rows), "fills")
    made = exact_products.add_product(frame, "usd", nw.col("fee"), nw.col("px"), "exact")
    assert values(made, nw.col("usd"))[0] == [
        Decimal("99.8512345678"),
        Decimal("-2.499999999999999997"),  # -2.4999999999999999975
        Decimal("3.000000000000000005"),  # 3.0000000000000000045
        Decimal("-3.000000000000000004"),  # -3.0000000000000000045
        Decimal("1E-18"),
        0,
    ]


def test_product_with_too_many_digits_is_refused():
    rows = pd.DataFrame({"fee": [Decimal(10**15)], "px": [Decimal(10**4)]}).astype(EXACT)
    frame = frame_access.open_frame(rows, "fills")
    with pytest.raises(ValueError, match=r"^an exact number has at most 18 digits before"):
        exact_products.add_product(frame, "usd", nw.col("fee"), nw.col("px"), "exact")


def test_price_with_nineteen_decimals_is_refused():
    prices = {"HYPE": Decimal("0.0000000000000000125")}
    frame = usd_values.apply_prices(fills(), ["fee"], nw.col("fee_token"), prices, "float")
    assert values(frame, nw.col("fee"))[0][1] == 0.25 * 1.25e-17
    with pytest.raises(ValueError, match=r"^prices: the price of 'HYPE', 1.25E-17, has more than"):
        usd_values.apply_prices(fills("exact"), ["fee"], nw.col("fee_token"), prices, "exact")


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_prices_of_tokens_by_hand(kind):
    """USDH is worth 0.75 and HYPE 30; a price of 1 changes nothing."""
    prices = usd_values.parse_prices({"Usde": 1.0, "usdh": "0.75", "HYPE": 30, "USDC": 1, "": 1})
    assert prices == {"USDH": Decimal("0.75"), "HYPE": 30, "USDE": 1}
    made = usd_values.apply_prices(fills(kind), ["fee"], nw.col("fee_token"), prices, kind)
    assert values(made, nw.col("fee"))[0] == [
        0.5, 7.5, 3, -60, 0.5625, 5.25, 0.375, 0.0625, 0.03125,
    ]  # fmt: skip


@pytest.mark.parametrize("price", [0, -1, "x", NAN, "inf", None])
def test_price_must_be_positive(price):
    with pytest.raises(ValueError, match=r"^prices: 'HYPE' must have a positive price in USD, not"):
        usd_values.parse_prices({"USDH": 1, "HYPE": price})


def test_second_price_or_cash_price_is_refused():
    assert usd_values.parse_prices(None) == {}
    assert usd_values.parse_prices({"a": 0.5, "A": "0.50"}) == {"A": Decimal("0.5")}
    with pytest.raises(ValueError, match=r"^prices: 'A' has two prices"):
        usd_values.parse_prices({"a": 1, "A": 2})
    for token in ("usdc", "USDC", ""):
        with pytest.raises(ValueError, match=f"^prices: '{token}' counts as one USD. Remove"):
            usd_values.parse_prices({token: 2})


def test_collateral_of_dexes_by_hand():
    meta = pd.DataFrame(
        {"name": ["BTC", "flx:TSLA", "flx:GOLD", "pre:X", "usd:Y", "new:Z", "tet:Q"],
         "collateral_token": [235, 360, 360, 235, 0, None, 268]}
    )  # fmt: skip
    assert usd_values.dex_tokens(meta) == {"flx": "USDH", "pre": "USDE", "tet": "USDT0"}
    assert usd_values.dex_tokens(pl.from_pandas(meta).lazy())["flx"] == "USDH"
    assert usd_values.dex_tokens(None) == {}
    assert usd_values.dex_tokens({"a": "B"}) == {"a": "B"}
    with pytest.raises(MissingColumns, match=r"^meta: the frame has no columns"):
        usd_values.dex_tokens(pd.DataFrame())
    text = "^meta: collateral_token 7 of pre:X is unknown. "
    text += "The known ones are 0 = USDC, 235 = USDE, 268 = "
    with pytest.raises(MissingColumns, match=text):
        usd_values.dex_tokens(meta.assign(collateral_token=[0, 0, 0, 7, 0, 0, 0]))
    with pytest.raises(MissingColumns, match=r"^meta: .*collateral_token"):
        usd_values.dex_tokens(meta[["name"]])


def test_collateral_from_fills_by_hand():
    rows = pd.DataFrame(
        {"coin": ["flx:A", "flx:B", "flx:A", "pre:X", "BTC", "@107", "usd:Y"],
         "fee_token": ["USDH", "USDH", "USDC", "USDE", "HYPE", "HYPE", "USDC"]}
    )  # fmt: skip
    opened = frame_access.open_frame(rows, "fills")
    assert usd_values.dex_tokens_in_fills(opened) == {"flx": "USDH", "pre": "USDE"}
    assert usd_values.dex_tokens_in_fills(frame_access.open_frame(rows[["coin"]], "fills")) == {}
    two = rows.assign(fee_token=["USDH", "USDT0", "USDC", "USDE", "HYPE", "HYPE", "USDC"])
    with pytest.raises(MissingColumns, match=r"^fills: dex flx has fees in USD.* and in USD.*meta"):
        usd_values.dex_tokens_in_fills(frame_access.open_frame(two, "fills"))


def test_tokens_at_par_by_hand():
    frame = pd.DataFrame(ROWS, columns=NAMES)
    assert usd_values.tokens_at_par(frame) == ["USDE", "USDH"]
    assert usd_values.tokens_at_par(frame.drop(columns="fee_token")) == []
    assert usd_values.tokens_at_par(pl.from_pandas(frame)) == []


@pytest.mark.filterwarnings("error")
def test_prices_without_effect_are_named():
    prices = {"ZZZ": Decimal(1), "HYPE": Decimal(1), "USDT0": Decimal(1), "AAA": Decimal(2)}
    text = "^prices: no fill or dex uses AAA, ZZZ. "
    text += "The tokens in use are HYPE, PURR, USDC, USDE, USDH, USDT0."
    with pytest.warns(UnusedPrices, match=text):
        usd_values.warn_unused_prices(prices, fills(), {"tet": "usdt0"})
    usd_values.warn_unused_prices({"HYPE": Decimal(1)}, fills(), {})
    usd_values.warn_unused_prices({}, fills(), {})
    bare = frame_access.open_frame(pd.DataFrame({"coin": ["BTC"]}), "fills")
    with pytest.warns(
        UnusedPrices, match="uses HYPE. The fills do not name the tokens of their fees"
    ):
        usd_values.warn_unused_prices({"HYPE": Decimal(1)}, bare, {})


@pytest.mark.filterwarnings("error")
def test_missing_amounts_are_counted_by_column():
    frame = pd.DataFrame(
        {"px": [1.0, NAN, NAN], "sz": [1.0] * 3, "closed_pnl": [NAN, 1.0, 1.0],
         "fee": [1.0] * 3, "builder_fee": [0.5] * 3}
    )  # fmt: skip
    with pytest.warns(MissingAmounts) as caught:
        usd_values.warn_missing_amounts(frame_access.open_frame(frame, "fills"), "fills")
    text = str(caught[0].message)
    assert text.startswith(
        "fills: of 3 rows, px is missing in 2 and closed_pnl is missing in 1. Sums leave these "
    )
    assert "its parts" not in text
    gone = frame.assign(fee=[NAN] * 3, deployer_fee=1.0)
    with pytest.warns(MissingAmounts, match="its parts builder_fee and deployer_fee do"):
        usd_values.warn_missing_amounts(frame_access.open_frame(gone, "fills"), "fills")
    bare = gone.drop(columns=["builder_fee", "deployer_fee"])
    with pytest.warns(MissingAmounts) as caught:
        usd_values.warn_missing_amounts(frame_access.open_frame(bare, "fills"), "fills")
    assert "its parts" not in str(caught[0].message)
    usd_values.warn_missing_amounts(frame_access.open_frame(frame.fillna(1.0), "fills"), "fills")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [1, 2])
def test_spot_buys_without_token_are_counted(count):
    """A sale, a perp, a fee of 0 and an empty name are none."""
    frame = pd.DataFrame(
        [("@107", "B", 0.5, None)] * count
        + [("PURR/USDC", "A", 1.0, None), ("BTC", "B", 1.0, None), ("@9", "B", 0.0, None)]
        + [("@9", "B", 1.0, ""), ("@9", "B", 1.0, "HYPE")],
        columns=["coin", "side", "fee", "fee_token"],
    )
    word = "1 spot buy has" if count == 1 else "2 spot buys have"
    with pytest.warns(MissingTokens, match=f"^rows: {word} a fee but no fee_token"):
        usd_values.warn_missing_tokens(frame_access.open_frame(frame, "rows"), "rows")
    usd_values.warn_missing_tokens(frame_access.open_frame(frame[count:], "rows"), "rows")
    for name in ("fee", "fee_token"):
        bare = frame_access.open_frame(frame.drop(columns=name), "rows")
        usd_values.warn_missing_tokens(bare, "rows")
    with pytest.warns(MissingFees, match="^rows: column builder_fee is missing on ever"):
        usd_values.warn_missing_builder_fees(
            frame_access.open_frame(frame.assign(builder_fee=NAN), "rows"), "rows"
        )
    known = frame.assign(builder_fee=[0.0] + [NAN] * (len(frame) - 1))
    usd_values.warn_missing_builder_fees(frame_access.open_frame(known, "rows"), "rows")
