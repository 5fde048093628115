"""Liquidation prices and buffers agree with the exchange's own figures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.worlds import world_of
from toolkit.liquidations import buffers, levels
from toolkit.liquidations._margin_buffers import read_tiers
from toolkit.rules.margin import liquidation_price, maintenance

from .simulated import served

_BEYOND = 1_000
"""The exchange states no price above this multiple of the mark price."""


@pytest.fixture(scope="module")
def held():
    """Return every position of two worlds with its figures from `buffers`."""
    return pd.concat([held_in(world_of("tiny", seed)) for seed in (7, 2)], ignore_index=True)


def held_in(world):
    states = replace(world.sources, fills=[], funding=[], ledger=[])
    session = served(replace(world, sources=states))
    asked = {"session": session}
    users = session.world["users"]
    answer = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", **asked)
    accounts, positions = answer.accounts, answer.positions
    contexts = pd.concat(
        [tk.meta_and_asset_ctxs(dex=dex, **asked) for dex in session.world["dexes"]]
    )
    tables = tk.concat([tk.margin_tables(dex=dex, **asked) for dex in session.world["dexes"]])
    positions["dex"] = positions["dex"].replace("native", "hyperliquid")  # the name in results
    with pytest.warns(UserWarning, match="spot wallet"):
        result = buffers(accounts, positions, contexts, margin_tables=tables)
    # Without a word on modes, exactly the unified and portfolio-margin accounts are left out.
    snapshot = tk.account_value_snapshots(["ALL"], **asked)
    shared = set(snapshot.loc[snapshot["account_mode"] >= 2, "user"])
    is_cross = result["margin"] == "cross"
    assert (result["equity"].isna() == (is_cross & result["user"].isin(shared))).all()
    assert (result["user"].isin(shared) & ~is_cross).any()
    whole = buffers(snapshot, positions, contexts, margin_tables=tables)
    assert whole["equity"].notna().all()
    assert not (whole["distance"] < 0).any()
    count = int((result["margin"] == "cross").sum())
    said = f"margin tables; maintenance as stated for {count} of {count} cross accounts"
    assert result.attrs["toolkit"]["margin"] == said
    keys = ["user", "dex"]
    alone = positions[positions["leverage_type"] == "isolated"]
    crossed = positions[positions["leverage_type"] == "cross"]
    rooms = result.drop(columns=["notional", "positions"])
    rows = pd.concat(
        [
            alone.merge(rooms[rooms["margin"] == "isolated"], on=[*keys, "coin"]),
            crossed.merge(rooms[rooms["margin"] == "cross"].drop(columns="coin"), on=keys),
        ],
        ignore_index=True,
    )
    assert len(rows) == len(positions)
    rows = rows[rows["equity"].notna()].reset_index(drop=True)
    market = contexts.set_index("name").loc[rows["coin"]]
    rows["tick"] = 10.0 ** (market["sz_decimals"].to_numpy() - 6)
    rows["side"] = np.sign(rows["szi"])
    rows["mark"] = rows["position_value"] / rows["szi"].abs()
    most, low, _ = read_tiers(rows, contexts, tables)
    # Equity behind a position: the account's equity less the margin of its other positions.
    behind = rows["buffer"] + maintenance(rows["position_value"], most, low)
    rows["computed_px"] = liquidation_price(rows["mark"], rows["szi"], behind, most, low)
    return rows


def test_liquidation_price_equals_stated(held):
    """Prices agree to the last digit; if one is missing, no price above 0 liquidates."""
    px = held["computed_px"]
    named = held["liquidation_px"].notna()
    assert named.any()
    off = (px - held["liquidation_px"])[named].abs()
    assert (off <= held["tick"][named] * 0.51).all()
    beyond = px.isna() | (px < held["tick"]) | (px > 0.999 * _BEYOND * held["mark"])
    assert beyond[~named].all()


def test_isolated_position_uses_own_margin(held):
    """The distance is that of the liquidation price, and all but the safest positions have one.

    The price of a long position is above 0, so its distance is below 1; that of a short is not.
    """
    alone = held[held["margin"] == "isolated"]
    assert len(alone) > 10
    assert (alone["equity"] == alone["margin_used"]).all()
    named = alone[alone["liquidation_px"].notna()]
    assert (named.loc[named["side"] > 0, "distance"] < 1).all()
    assert (named["distance"] > 0).all()
    away = named["side"] * (1 - named["liquidation_px"] / named["mark"])
    assert ((away - named["distance"]).abs() <= 0.51 * named["tick"] / named["mark"] + 1e-9).all()
    assert len(named) > 0.8 * len(alone)


def test_levels_agree_with_buffers(held):
    """Isolated positions are in the bin of the move that liquidates them."""
    alone = held[(held["margin"] == "isolated") & ((held["distance"] - 0.2).abs() > 1e-3)]
    placed = levels(alone, reach=0.2)
    near = alone[alone["distance"] < 0.2]
    assert len(near)
    assert placed["notional"].sum() == pytest.approx(near["position_value"].sum())
    assert placed["positions"].sum() == len(near)
