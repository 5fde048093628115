"""The values of the builder report, recomputed from its fills and tables."""

from typing import Any

import toolkit as tk

Values = dict[str, Any]


def _usd(fills):
    return float((fills["px"] * fills["sz"]).sum())


def _own(builder):
    return builder.fills[builder.fills["builder"] == builder.address]


def _traded(builder):
    """Return the trades: conversions of outcome tokens are none."""
    words = ("Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question")
    return builder.fills[~builder.fills["dir"].isin(words)]


def _routable(builder):
    """Return the fills that a builder could have had: not of TWAPs, not forced, no settlements."""
    fills = _traded(builder)
    forced = fills["dir"].str.contains("^Liquidated|^Auto|^Settlement|^Net Child|^Spot Dust")
    forced |= fills["liquidated_user"] == fills["user"]
    return fills[fills["builder"].notna() | ~(fills["twap_id"].notna() | forced)]


def _share(builder):
    return _usd(_own(builder)) / _usd(_routable(builder))


def sentence_traded(builder):
    own = _own(builder)
    return {"volume": _usd(own), "revenue": own["builder_fee"].sum()}


def sentence_all(builder):
    return {"volume": _usd(_traded(builder)), "could": _usd(_routable(builder))}


def sentence_share(builder):
    return {"rate": _share(builder)}


def sentence_unnamed(builder):
    named = [item for item in builder.fills["user"] if isinstance(item, str)]
    return {"unnamed": len(builder.fills) - len(named), "fills": len(builder.fills)}


def headline_revenue(builder):
    return {"revenue": _own(builder)["builder_fee"].sum()}


def headline_volume(builder):
    return {"volume": _usd(_own(builder)), "fills": len(_own(builder))}


def headline_fee(builder):
    own = _own(builder)
    return {"fee": 1e4 * own["builder_fee"].sum() / _usd(own)}


def headline_share(builder):
    row = tk.builders.attach_rate(builder.fills, builder.address).iloc[0]
    return {"rate": _share(builder), "low": row["low"], "high": row["high"]}


def headline_elsewhere(builder):
    others = builder.fills["builder"].notna() & (builder.fills["builder"] != builder.address)
    routable = _routable(builder)
    return {
        "elsewhere": _usd(builder.fills[others]),
        "direct": _usd(routable[routable["builder"].isna()]),
    }


def headline_users(builder):
    return {
        "users": builder.fills["user"].nunique(),
        "through": _own(builder)["user"].nunique(),
    }
