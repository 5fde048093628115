"""Margin tiers in liquidation figures: docs/live_service.md, section 4."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import MONDAY, as_numbers, times
from tests.engines import Engine

ENGINES = ("pandas", "polars", "polars lazy", "duckdb")


@pytest.fixture
def meta(examples):
    return tk.frame("meta", examples["4_meta"])


@pytest.fixture
def tables(examples):
    return tk.frame("marginTables", examples["4_meta"])


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


def test_large_position_uses_second_tier(meta, tables):
    """0.1 * 10e6 - 3e6 * 0.05 = 850,000, and not 500,000."""
    row = tk.liquidations.buffers(accounts(), whale(), meta, margin_tables=tables).iloc[0]
    assert row["maintenance"] == pytest.approx(850_000)
    assert row["buffer"] == pytest.approx(1_000_000)
    # At nine ninths less 1/9: 8,888,889 * 0.1 - 150,000 = 738,889 = 1,850,000 - 1,111,111.
    assert row["distance"] == pytest.approx(1 / 9)


def test_small_position_uses_first_tier(meta, tables):
    row = tk.liquidations.buffers(
        accounts(10_000.0), whale(100.0), meta, margin_tables=tables
    ).iloc[0]
    assert row["maintenance"] == pytest.approx(50_000 / 20)


def test_rising_short_reaches_second_tier(meta, tables):
    """A short of 2.9 million reaches the second tier when the price rises.

    200,000 - 2.9e6 d = 0.1 * 2.9e6 (1 + d) - 150,000, so d = 60,000 / 3.19e6.
    """
    buffers = tk.liquidations.buffers(accounts(2e5), whale(-5_800.0), meta, margin_tables=tables)
    move = 60_000 / 3.19e6
    assert 2.9e6 * (1 + move) < 3e6
    # Below 3 million the first tier counts: 200,000 - 2.9e6 d = 0.05 * 2.9e6 (1 + d).
    assert buffers["distance"].item() == pytest.approx(55_000 / (2.9e6 * 1.05))
    rich = tk.liquidations.buffers(accounts(4e5), whale(-5_800.0), meta, margin_tables=tables)
    move = 260_000 / 3.19e6
    assert 2.9e6 * (1 + move) > 3e6
    assert rich["distance"].item() == pytest.approx(move)


def test_low_table_id_is_maximum_leverage(meta, tables):
    """LOOM has table 3, which means 3x, also if the table is not listed."""
    coins = whale().assign(coin="LOOM", szi=1_000.0, position_value=6_000.0)
    for given in (tables, tables[tables["margin_table_id"] == 52]):
        row = tk.liquidations.buffers(accounts(), coins, meta, margin_tables=given).iloc[0]
        assert row["maintenance"] == pytest.approx(1_000.0)


def test_missing_tables_warn_and_use_one_tier(meta):
    with pytest.warns(UserWarning, match="BNB: their margin tables were not passed") as warned:
        buffers = tk.liquidations.buffers(accounts(), whale(), meta)
    assert "the distance of large positions from liquidation is wrong" in str(warned[0].message)
    assert buffers["maintenance"].item() == pytest.approx(500_000)
    assert buffers.attrs["toolkit"]["margin"] == "one tier for each coin"


@pytest.mark.parametrize("column", ["lower_bound", "max_leverage"])
def test_incomplete_tables_warn_and_use_one_tier(examples, column):
    """The first tier of BNB's table lacks a number: 10x counts for all, and provenance says so."""
    meta, tables = (
        tk.frame("meta", examples["4_meta"]),
        tk.frame("marginTables", examples["4_meta"]),
    )
    first = (tables["margin_table_id"] == 52) & (tables["tier"] == 0)
    lacking = tables.assign(**{column: tables[column].mask(first)})
    with pytest.warns(UserWarning, match="margin_tables lacks the leverage or the lower bound"):
        buffers = tk.liquidations.buffers(accounts(), whale(), meta, margin_tables=lacking)
    assert buffers["maintenance"].item() == pytest.approx(500_000)
    assert buffers.attrs["toolkit"]["margin"] == "one tier for each coin"


def test_margin_tier_nulls_are_missing(examples):
    """A tier with a null number fails neither meta nor the tables."""
    answer = copy.deepcopy(examples["4_meta"])
    answer["marginTables"][0][1]["marginTiers"][0].update(lowerBound=None, maxLeverage=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(tk.frame("meta", answer)) == len(answer["universe"])
        tables = tk.frame("marginTables", answer)
    assert tables[["lower_bound", "max_leverage"]].isna().sum().tolist() == [1, 1]


def test_position_leverage_replaces_metadata():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffers = tk.liquidations.buffers(accounts(), whale().assign(max_leverage=10))
    assert buffers["maintenance"].item() == pytest.approx(500_000)
    assert buffers.attrs["toolkit"]["margin"] == "one tier for each coin"
    with pytest.raises(ValueError, match="column max_leverage is missing"):
        tk.liquidations.buffers(accounts(), whale())


def test_tables_without_ids_are_refused(tables):
    with pytest.raises(ValueError, match="the table of each coin is not known"):
        tk.liquidations.buffers(accounts(), whale(), {"BNB": 10}, margin_tables=tables)


def test_stated_maintenance_is_in_provenance(meta, tables):
    stated = accounts().assign(cross_maintenance_margin_used=900_000.0)
    buffers = tk.liquidations.buffers(stated, whale(), meta, margin_tables=tables)
    said = "margin tables; maintenance as stated for 1 of 1 cross accounts"
    assert buffers.attrs["toolkit"]["margin"] == said
    empty = accounts().assign(cross_maintenance_margin_used=float("nan"))
    buffers = tk.liquidations.buffers(empty, whale(), meta, margin_tables=tables)
    assert buffers.attrs["toolkit"]["margin"] == "margin tables"


def test_stated_maintenance_replaces_computed(meta, tables):
    """The stated 900,000 counts, and the margin changes by the tier on the way."""
    stated = accounts().assign(cross_maintenance_margin_used=900_000.0)
    row = tk.liquidations.buffers(stated, whale(), meta, margin_tables=tables).iloc[0]
    assert (row["maintenance"], row["buffer"]) == (900_000.0, 950_000.0)
    assert row["distance"] == pytest.approx(0.95 / 9)
    unknown = accounts().assign(cross_maintenance_margin_used=np.nan)
    row = tk.liquidations.buffers(unknown, whale(), meta, margin_tables=tables).iloc[0]
    assert row["maintenance"] == pytest.approx(850_000)


def test_levels_of_long_use_tiers(meta, tables):
    """If the state names no price: 500 * (1 - 1/9) = 444.44, 11.1 % below."""
    rows = tk.liquidations.levels(
        whale(), accounts=accounts(), max_leverage=meta, margin_tables=tables
    )
    assert rows["distance"].tolist() == [-0.11]
    assert rows["notional"].tolist() == [10e6]
    plain = tk.liquidations.levels(whale())
    assert plain["unplaced"].tolist() == [10e6]
    stated = tk.liquidations.levels(
        whale().assign(liquidation_px=478.0),
        accounts=accounts(),
        max_leverage=meta,
        margin_tables=tables,
    )
    assert stated["distance"].tolist() == [-0.04]


def test_levels_of_short_use_tiers(meta, tables):
    """400,000 behind 2.9 million short: 260,000 / 3.19 million = 8.15 % above."""
    rows = tk.liquidations.levels(
        whale(-5_800.0), accounts=accounts(4e5), max_leverage=meta, margin_tables=tables
    )
    assert rows["distance"].tolist() == [0.08]
    assert rows["side"].tolist() == ["short"]


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["float", "exact"])
def test_engines_agree_on_tiers(name, kind, meta, tables):
    engine = Engine(name)
    given = [engine.give(as_numbers(frame, kind)) for frame in (accounts(), whale())]
    buffers = tk.liquidations.buffers(
        *given, engine.give(meta), margin_tables=engine.give(as_numbers(tables, kind))
    )
    assert engine.take(buffers)[0]["maintenance"] == pytest.approx(850_000)


def test_each_dex_has_its_own_tables(meta, tables):
    """Table 52 of dex flx is different: flx:BNB has 4x from the first dollar."""
    other = tables[tables["margin_table_id"] == 52].assign(dex="flx", max_leverage=4)
    both = pd.concat([tables.assign(dex="hyperliquid"), other])
    more = pd.concat([meta, meta.assign(name="flx:" + meta["name"])])
    rows = pd.concat([whale(), whale().assign(coin="flx:BNB", dex="flx")])
    owners = pd.concat([accounts(), accounts().assign(dex="flx")])
    buffers = tk.liquidations.buffers(owners, rows, more, margin_tables=both)
    assert buffers["maintenance"].tolist() == pytest.approx([10e6 / 8, 850_000])
    with pytest.warns(UserWarning, match="flx:BNB: their margin tables"):
        tk.liquidations.buffers(owners, rows, more, margin_tables=tables)


def test_two_batches_are_refused(meta, tables):
    early = whale().assign(time=times([MONDAY]))
    late = whale(-1.0).assign(time=times([MONDAY + 1]))
    for rows in (pd.concat([early, late]), pd.concat([late, early])):
        with pytest.raises(ValueError, match="positions: rows of 0xa have 2 different times"):
            tk.liquidations.levels(rows)
        with pytest.raises(ValueError, match="Keep one batch"):
            tk.liquidations.buffers(accounts(), rows, meta, margin_tables=tables)
    owners = pd.concat([accounts(), accounts(1.0)], ignore_index=True)
    owners["time"] = times([MONDAY, MONDAY + 1])
    with pytest.raises(ValueError, match="accounts: rows of 0xa have 2 different times"):
        tk.liquidations.buffers(owners, whale(), meta, margin_tables=tables)
    other = late.assign(user="0xb")
    assert len(tk.liquidations.levels(pd.concat([early, other]))) == 2


def test_batches_without_time_are_refused(meta, tables):
    early, late = whale().drop(columns="time", errors="ignore"), whale()
    late = late.drop(columns="time", errors="ignore").assign(position_value=2 * 10e6)
    for rows in (pd.concat([early, late]), pd.concat([late, early])):
        with pytest.raises(ValueError, match="positions: 0xa BNB has several rows"):
            tk.liquidations.levels(rows)
        with pytest.raises(ValueError, match="Pass the rows of one batch"):
            tk.liquidations.buffers(accounts(), rows, meta, margin_tables=tables)
    owners = pd.concat([accounts(), accounts(1.0)], ignore_index=True)
    with pytest.raises(ValueError, match="accounts: 0xa hyperliquid has several rows"):
        tk.liquidations.buffers(owners, whale(), meta, margin_tables=tables)


def test_no_positions_give_empty_frames(meta, tables):
    assert tk.liquidations.levels(whale().iloc[:0]).empty
    buffers = tk.liquidations.buffers(accounts(), whale().iloc[:0], meta, margin_tables=tables)
    assert buffers.empty
    assert "distance" in buffers


def test_distance_implies_stated_liquidation_price(examples, meta):
    """The isolated HYPE position of the example: 7.525754 behind 75.652 at 10x."""
    state = tk.frame("clearinghouseState", examples["1_state"])
    owners, positions = (frame.assign(user="0xc") for frame in state)
    row = tk.liquidations.buffers(owners, positions).iloc[0]
    assert row["maintenance"] == pytest.approx(75.652 / 20)
    mark, stated = 75.652 / 2, 35.8559189474
    assert mark * (1 - row["distance"]) == pytest.approx(stated, rel=1e-6)
