"""The values of liquidations and positioning in a market report, recomputed from its frames."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.reports.compute_once import compute_once

Values = dict[str, Any]
SHOCKS = [-0.3, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2, 0.3]


def _own(positions):
    rows = positions.frames.states.positions
    return rows[rows["coin"] == positions.market.coin]


def _run(positions, shocks, **options):
    states, frames = positions.frames.states, positions.frames
    tiers = {} if frames.tiers is None else {"margin_tables": frames.tiers}
    leverages = None if frames.tiers is None else frames.markets
    fit = tk.slippage.fit(positions.market.samples)
    coin = positions.market.coin
    found = tk.liquidations.cascade(
        states.positions, states.accounts, fit, coin, shocks, max_leverage=leverages, **tiers,
        **options,
    )  # fmt: skip
    return found.params


@compute_once
def _alone(positions):
    return _run(positions, SHOCKS, draws=99)


def _liquidated(positions):
    """Return the changes by a fifth that liquidate somebody, the fall first."""
    rows = _alone(positions)
    return [
        row for _, row in rows[(rows["shock"].abs() == 0.2) & (rows["accounts"] > 0)].iterrows()
    ]


def _said(positions, make):
    return [make(row) for row in _liquidated(positions)]


def sentence_positions_unknown(positions):
    assert positions.frames.states is None
    return {"reason": positions.frames.reason}


def sentence_no_position(positions):
    assert _own(positions).empty
    users = set(positions.frames.states.accounts["user"])
    return {"accounts": len(users), "coin": positions.market.coin}


def sentence_shown(positions):
    rows, interest = _own(positions), positions.market.context["open_interest"].item()
    sizes = rows["szi"].astype("float64")
    return {
        "accounts": len(set(rows["user"])),
        "coin": positions.market.coin,
        "long": sizes[sizes > 0].sum() / interest,
        "short": -sizes[sizes < 0].sum() / interest,
    }


def sentence_shared(positions):
    modes = positions.frames.values.set_index("user")["mode"]
    known = modes.reindex(sorted(set(_own(positions)["user"])))
    return {"shared": sum(mode in ("unified", "portfolio margin") for mode in known)}


def sentence_single_tiers(positions):
    assert positions.frames.tiers is None
    return {}


def sentence_quiet(positions):
    rows = _alone(positions)
    assert not rows["accounts"].any()
    assert np.allclose(rows["estimate"], rows["shock"])
    return {"coin": positions.market.coin, "low": -0.3, "high": 0.3}


def sentence_shock(positions):
    coin = positions.market.coin
    return _said(
        positions,
        lambda row: {
            "coin": coin,
            "shock": row["shock"],
            "accounts": row["accounts"],
            "usd": row["forced_usd"],
        },
    )


def sentence_added(positions):
    return _said(
        positions,
        lambda row: {
            place: 1e4 * (row[name] - row["shock"])
            for place, name in (("added", "estimate"), ("low", "low"), ("high", "high"))
        },
    )


def sentence_spiral(positions):
    rows = _alone(positions).sort_values("amplification", kind="stable")
    row = rows.iloc[-1]
    assert row["amplification"] >= 1.01
    assert row["estimate"] == pytest.approx(row["amplification"] * row["shock"])
    return {"shock": row["shock"], "times": row["amplification"], "rounds": row["rounds"]}


def sentence_no_spiral(positions):
    rows = _alone(positions)
    assert rows["accounts"].any()
    assert ((rows["estimate"] / rows["shock"] - 1) < 0.01).all()
    return {}


def sentence_no_law(positions):
    rows = _alone(positions)
    assert rows.loc[rows["accounts"] > 0, "estimate"].isna().any()
    return {}


def sentence_together(positions):
    fall, rise = _run(positions, [-0.2, 0.2], betas=1.0, draws=1)["forced_usd"]
    return {"shock": 0.2, "fall": fall, "rise": rise}


def _net_by_size(positions):
    """Return the net position of each class of size, the largest first."""
    rows = _own(positions)
    states, values = positions.frames.states, positions.frames.values
    sizes = states.accounts if values is None else values.rename(columns={"value": "account_value"})
    sums = sizes.groupby("user")["account_value"].sum()
    edges = [-np.inf, 1e4, 1e5, 1e6, np.inf]
    names = ["below 10k", "10k to 100k", "100k to 1M", "1M and more"]
    size = pd.cut(rows["user"].map(sums), edges, right=False, labels=names).astype("str")
    signed = np.sign(rows["szi"]) * rows["position_value"]
    table = rows.assign(size=size, signed=signed, gross=signed.abs()).groupby("size")
    table = table.agg(usd=("signed", "sum"), gross=("gross", "sum"), accounts=("user", "nunique"))
    # Without a difference in cents, the class with more accounts comes first.
    table = table.assign(cents=(100 * table["usd"].abs()).round())
    return table.sort_values(["cents", "accounts"], ascending=False)


def sentence_largest_net(positions):
    row = _net_by_size(positions).iloc[0]
    classes = positions.classes.set_index("size").loc[row.name]
    assert row["accounts"] > 1
    return {
        "size": row.name,
        "usd": row["usd"],
        "accounts": row["accounts"],
        "net": row["usd"] / row["gross"],
        "low": classes["low"],
        "high": classes["high"],
    }


def sentence_single_net(positions):
    row = _net_by_size(positions).iloc[0]
    assert row["accounts"] == 1
    return {"size": row.name, "usd": row["usd"]}


def _sides(positions):
    rows = _own(positions)
    return {"long": rows[rows["szi"] > 0], "short": rows[rows["szi"] < 0]}


def sentence_crowding(positions):
    values: Values = {}
    for side, rows in _sides(positions).items():
        shares = rows["position_value"] / rows["position_value"].sum()
        values[side] = 1 / (shares**2).sum() if len(rows) else None
        values[f"{side}_top"] = shares.max() if len(rows) else None
    return values


def sentence_gains(positions):
    return {
        side: 1e4 * rows["unrealized_pnl"].sum() / (rows["szi"].abs() * rows["entry_px"]).sum()
        if len(rows)
        else None
        for side, rows in _sides(positions).items()
    }
