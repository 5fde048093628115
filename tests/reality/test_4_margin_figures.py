"""Margin tiers in liquidation figures: docs/live_service.md, section 4."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from toolkit.liquidations import buffers, levels


@pytest.fixture
def meta(examples):
    return tk.frame("meta", examples["4_meta"])


@pytest.fixture
def tables(examples):
    return tk.frame("marginTables", examples["4_meta"])


@pytest.fixture
def buffer(meta, tables):
    """Return a function that gives the row of one account and its position."""

    def computed(owners, position, margin_tables=tables):
        return buffers(owners, position, meta, margin_tables=margin_tables).iloc[0]

    return computed


def accounts(equity=1.85e6):
    return pd.DataFrame({"user": ["0xa"], "dex": [""], "cross_account_value": [equity]})


def whale(szi=20_000.0):
    """Ten million USD of BNB at 500, cross."""
    return pd.DataFrame(
        {
            "user": ["0xa"],
            "dex": [""],
            "coin": ["BNB"],
            "szi": [szi],
            "position_value": [500 * abs(szi)],
            "liquidation_px": [np.nan],
            "leverage_type": ["cross"],
            "margin_used": [1e6],
        }
    )


def test_position_uses_tier_of_its_size(buffer):
    """0.1 * 10e6 - 3e6 * 0.05 = 850,000, and not 500,000; 50,000 USD are in the first tier."""
    row = buffer(accounts(), whale())
    assert row["maintenance"] == pytest.approx(850_000)
    assert row["buffer"] == pytest.approx(1_000_000)
    # At nine ninths less 1/9: 8,888,889 * 0.1 - 150,000 = 738,889 = 1,850,000 - 1,111,111.
    assert row["distance"] == pytest.approx(1 / 9)
    small = buffer(accounts(10_000.0), whale(100.0))
    assert small["maintenance"] == pytest.approx(50_000 / 20)


def test_rising_short_reaches_second_tier(buffer):
    """A short of 2.9 million reaches the second tier when the price rises, if its margin lasts.

    First tier: 200,000 - 2.9e6 d = 0.05 * 2.9e6 (1 + d).
    Second: 400,000 - 2.9e6 d = 0.1 * 2.9e6 (1 + d) - 150,000, so d = 260,000 / 3.19e6.
    """
    near, far = 55_000 / (2.9e6 * 1.05), 260_000 / 3.19e6
    assert 2.9e6 * (1 + near) < 3e6 < 2.9e6 * (1 + far)
    assert buffer(accounts(2e5), whale(-5_800.0))["distance"] == pytest.approx(near)
    assert buffer(accounts(4e5), whale(-5_800.0))["distance"] == pytest.approx(far)


def test_low_table_id_is_maximum_leverage(buffer, tables):
    """LOOM has table 3, which means 3x, also if the table is not listed."""
    coins = whale().assign(coin="LOOM", szi=1_000.0, position_value=6_000.0)
    for given in (tables, tables[tables["margin_table_id"] == 52]):
        assert buffer(accounts(), coins, given)["maintenance"] == pytest.approx(1_000.0)


def test_missing_tables_warn_and_use_one_tier(meta, tables):
    """If the first tier of BNB's table lacks a number, 10x counts for all, too."""
    first = (tables["margin_table_id"] == 52) & (tables["tier"] == 0)
    for given, named in (
        (None, "BNB: their margin tables"),
        (tables.assign(lower_bound=tables["lower_bound"].mask(first)), "margin_tables lacks"),
        (tables.assign(max_leverage=tables["max_leverage"].mask(first)), "margin_tables lacks"),
    ):
        with pytest.warns(UserWarning, match=named):
            found = buffers(accounts(), whale(), meta, margin_tables=given)
        assert found["maintenance"].item() == pytest.approx(500_000)
        assert found.attrs["toolkit"]["margin"] == "one tier for each coin"


def test_stated_maintenance_replaces_computed(meta, tables):
    """The stated 900,000 counts, and the margin changes by the tier on the way."""
    stated = accounts().assign(cross_maintenance_margin_used=900_000.0)
    found = buffers(stated, whale(), meta, margin_tables=tables)
    row = found.iloc[0]
    assert (row["maintenance"], row["buffer"]) == (900_000.0, 950_000.0)
    assert row["distance"] == pytest.approx(0.95 / 9)
    said = "margin tables; maintenance as stated for 1 of 1 cross accounts"
    assert found.attrs["toolkit"]["margin"] == said
    unknown = accounts().assign(cross_maintenance_margin_used=np.nan)
    found = buffers(unknown, whale(), meta, margin_tables=tables)
    assert found["maintenance"].item() == pytest.approx(850_000)
    assert found.attrs["toolkit"]["margin"] == "margin tables"


def test_levels_use_tiers_without_stated_price(meta, tables):
    """Long: 500 * (1 - 1/9) = 444.44, 11.1 % below. Short: 260,000 / 3.19 million above."""
    known = {"max_leverage": meta, "margin_tables": tables}
    rows = levels(whale(), accounts=accounts(), **known)
    assert (rows["distance"].tolist(), rows["notional"].tolist()) == ([-0.11], [10e6])
    assert levels(whale())["unplaced"].tolist() == [10e6]
    stated = levels(whale().assign(liquidation_px=478.0), accounts=accounts(), **known)
    assert stated["distance"].tolist() == [-0.04]
    short = levels(whale(-5_800.0), accounts=accounts(4e5), **known)
    assert (short["distance"].tolist(), short["side"].tolist()) == ([0.08], ["short"])


def test_distance_implies_stated_liquidation_price(examples):
    """The isolated HYPE position of the example: 7.525754 behind 75.652 at 10x."""
    state = tk.frame("clearinghouseState", examples["1_state"])
    row = buffers(*(frame.assign(user="0xc") for frame in state)).iloc[0]
    assert row["maintenance"] == pytest.approx(75.652 / 20)
    mark, stated = 75.652 / 2, 35.8559189474
    assert mark * (1 - row["distance"]) == pytest.approx(stated, rel=1e-6)
