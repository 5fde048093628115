"""Section 6: closed PnL, fees and funding of a dex are in its collateral."""

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import times
from toolkit.errors import UnusedPrices
from toolkit.pnl import attribution, round_trips

PRICES = {"USDH": 0.998}


@pytest.fixture
def fills(examples):
    """Return a trip on flx:TSLA: closed PnL -4 and fees 0.0576, both in USDH."""
    return tk.frame("userFills", examples["6_fee_token"])


@pytest.fixture
def paid():
    moment = times([1769178803_000] * 2)
    return pd.DataFrame({"coin": ["flx:TSLA", "BTC"], "time": moment, "usdc": [-2.0, 0.5]})


def test_collateral_without_price_counts_at_par(fills):
    result = attribution(fills)
    row = result.iloc[0]
    assert row["closed_pnl"] == -4.0
    assert row["trading_fee"] == pytest.approx(-0.0576, abs=1e-12)
    assert row["net"] == pytest.approx(-4.0576, abs=1e-12)
    assert (row["at_par"], row["unpriced_fees"]) == (2, 0)
    assert result.attrs["toolkit"]["at_par"] == ["USDH"]


def test_price_applies_to_collateral_of_dex(fills, paid):
    row = attribution(fills, paid, prices=PRICES).iloc[0]
    assert row["closed_pnl"] == pytest.approx(-3.992)
    assert row["trading_fee"] == pytest.approx(-0.0574848)
    assert row["funding"] == pytest.approx(0.998 * -2.0 + 0.5)
    assert row["net"] == pytest.approx(-3.992 - 0.0574848 - 1.996 + 0.5)
    assert row["at_par"] == 0


def test_native_perp_fee_needs_price(fills):
    """A native perp has USDC margin: only its fee is in the token, and has no price."""
    native = fills.assign(coin="ETH", fee_token="HYPE")
    row = attribution(native).iloc[0]
    assert (row["net"], row["unpriced_fees"], row["at_par"]) == (-4.0, 2, 0)
    row = attribution(native, prices={"HYPE": 30.0}).iloc[0]
    assert (row["closed_pnl"], row["unpriced_fees"]) == (-4.0, 0)
    assert row["trading_fee"] == pytest.approx(-0.0576 * 30)
    trip = round_trips(native, prices={"HYPE": 30.0}).iloc[0]
    assert (trip["gross"], trip["fees"]) == (-4.0, pytest.approx(-0.0576 * 30))


def test_price_of_unused_token_warns(fills):
    for helper in (attribution, round_trips):
        with pytest.warns(UnusedPrices, match=r"USDDH.*USDH") as warned:
            row = helper(fills, prices={"usddh": 0.75}).iloc[0]
        assert (len(warned), bool(row["at_par"])) == (1, True)
