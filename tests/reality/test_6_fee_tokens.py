"""Section 6: closed PnL, fees and funding of a dex are in its collateral."""

from decimal import Decimal

import pandas as pd
import pytest

from tests.analysis.examples import times
from tests.reality.rows import fills_of
from toolkit.errors import MissingColumns, UnusedPrices
from toolkit.pnl import attribution, round_trips

PRICES = {"USDH": 0.998}


@pytest.fixture(params=["float", "exact"])
def numbers(request):
    kind: str = request.param
    return kind


def test_collateral_without_price_counts_at_par(examples, numbers):
    result = attribution(fills_of(examples["6_fee_token"], numbers))
    row = result.iloc[0]
    assert float(row["closed_pnl"]) == -4.0
    assert float(row["trading_fee"]) == pytest.approx(-0.0576, abs=1e-12)
    assert float(row["net"]) == pytest.approx(-4.0576, abs=1e-12)
    assert (row["at_par"], row["unpriced_fees"]) == (2, 0)
    assert result.attrs["toolkit"]["at_par"] == ["USDH"]


def test_price_applies_to_collateral_of_dex(examples, engine):
    fills = fills_of(examples["6_fee_token"])
    paid = pd.DataFrame(
        {
            "coin": pd.array(["flx:TSLA", "BTC"], dtype="str"),
            "time": times([1769178803_000, 1769178803_000]),
            "usdc": [-2.0, 0.5],
        }
    )
    result = attribution(engine.give(fills), engine.give(paid), prices=PRICES)
    row = engine.take(result)[0]
    assert row["closed_pnl"] == pytest.approx(-3.992)
    assert row["trading_fee"] == pytest.approx(-0.0574848)
    assert row["funding"] == pytest.approx(0.998 * -2.0 + 0.5)
    assert row["net"] == pytest.approx(-3.992 - 0.0574848 - 1.996 + 0.5)
    assert row["at_par"] == 0


def test_exact_price_gives_exact_net(examples):
    fills = fills_of(examples["6_fee_token"], "exact")
    row = attribution(fills, prices={"USDH": "0.998"}).iloc[0]
    assert row["closed_pnl"] == Decimal("-3.992")
    assert row["net"] == Decimal("-3.992") - Decimal("0.0574848")


def test_meta_alone_names_collateral(examples):
    """Old fills name no fee token, but the metadata of the dex names the collateral."""
    fills = fills_of(examples["6_fee_token"]).drop(columns=["fee_token"])
    meta = pd.DataFrame({"name": ["flx:TSLA", "BTC"], "collateral_token": [360, 0]})
    assert attribution(fills)["at_par"].item() == 0
    row = attribution(fills, prices=PRICES, meta=meta).iloc[0]
    assert row["closed_pnl"] == pytest.approx(-3.992)
    assert row["trading_fee"] == pytest.approx(-0.0574848)
    assert attribution(fills, meta=meta)["at_par"].item() == 2


def test_unknown_collateral_index_refused(examples):
    meta = pd.DataFrame({"name": ["flx:TSLA"], "collateral_token": [999]})
    with pytest.raises(MissingColumns, match="collateral_token 999 of flx:TSLA"):
        attribution(fills_of(examples["6_fee_token"]), prices=PRICES, meta=meta)


@pytest.mark.parametrize("price", [0, -1, "much", float("nan")])
def test_price_must_be_positive(examples, price):
    with pytest.raises(ValueError, match="'USDH' must have a positive price"):
        attribution(fills_of(examples["6_fee_token"]), prices={"USDH": price})


def test_native_perp_fee_needs_price(examples):
    """A native perp has USDC margin: only its fee is in the token, and has no price."""
    fills = fills_of(examples["6_fee_token"]).assign(coin="ETH", fee_token="HYPE")
    row = attribution(fills).iloc[0]
    assert (row["net"], row["unpriced_fees"], row["at_par"]) == (-4.0, 2, 0)
    row = attribution(fills, prices={"HYPE": 30.0}).iloc[0]
    assert row["closed_pnl"] == -4.0
    assert row["trading_fee"] == pytest.approx(-0.0576 * 30)
    assert row["unpriced_fees"] == 0
    trip = round_trips(fills, prices={"HYPE": 30.0}).iloc[0]
    assert (trip["gross"], trip["fees"]) == (-4.0, pytest.approx(-0.0576 * 30))


@pytest.mark.parametrize("name", ["usdh", "UsdH"])
def test_price_name_ignores_case(name, examples, engine):
    """Closed PnL -4 and fees -0.0576 are in USDH at 0.75; the trips agree."""
    for kind in ("float", "exact"):
        fills = engine.give(fills_of(examples["6_fee_token"], kind))
        row = engine.take(attribution(fills, prices={name: 0.75}))[0]
        assert float(row["closed_pnl"]) == -3.0
        assert float(row["trading_fee"]) == pytest.approx(-0.0432)
        assert row["at_par"] == 0
        trips = engine.take(round_trips(fills, prices={name: 0.75}))
        assert sum(float(trip["gross"]) for trip in trips) == -3.0
        assert not any(trip["at_par"] for trip in trips)


def test_price_applies_to_lower_case_token(examples):
    """The price also applies to funding if fills write the token in lower case."""
    fills = fills_of(examples["6_fee_token"]).assign(fee_token="usdh")
    paid = pd.DataFrame({"coin": ["flx:TSLA"], "time": times([1769178803_000]), "usdc": [-2.0]})
    row = attribution(fills, paid, prices={"USDH": 0.75}).iloc[0]
    assert (row["closed_pnl"], row["funding"], row["at_par"]) == (-3.0, -1.5, 0)


def test_price_of_unused_token_warns(examples, engine):
    fills = engine.give(fills_of(examples["6_fee_token"]))
    words = "prices: no fill or dex uses USDDH. The tokens in use are USDH"
    with pytest.warns(UnusedPrices, match=words) as warned:
        row = engine.take(attribution(fills, prices={"USDDH": 0.75}))[0]
    assert (len(warned), row["closed_pnl"], row["at_par"]) == (1, -4.0, 2)
    with pytest.warns(UnusedPrices, match=words):
        round_trips(fills, prices={"usddh": 0.75})


def test_two_prices_of_token_are_refused(examples):
    fills = fills_of(examples["6_fee_token"])
    with pytest.raises(ValueError, match="'usdh' has two prices"):
        attribution(fills, prices={"USDH": 0.75, "usdh": 0.5})


@pytest.mark.parametrize("token", ["USDC", "usdc"])
def test_price_of_usdc_must_be_one(token, examples):
    """Otherwise its fees would have a price, and its closed PnL none."""
    fills = fills_of(examples["6_fee_token"])
    with pytest.raises(ValueError, match="counts as one USD"):
        attribution(fills, prices={token: 0.99})
    assert attribution(fills, prices={token: 1, "USDH": 0.75})["closed_pnl"].tolist() == [-3.0]
