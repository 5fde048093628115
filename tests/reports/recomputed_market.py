"""The values of the market report, recomputed from its frames."""

from typing import Any

import pytest

import toolkit as tk

Values = dict[str, Any]


def _cost(market, side):
    """Return the mean of the samples, with the interval that the helper gives for it."""
    row = tk.slippage.cost(market.samples, 100_000, side=side).iloc[0]
    size = market.samples[market.samples["amount_usd"] == 100_000]
    known = size[f"{side}_slippage_bps"]
    if known.notna().all():
        assert row["cost_bps"] == pytest.approx(known.mean())
    return row


def _running(market):
    """Return the TWAP orders that run; the others wait for their trigger."""
    return market.running[~market.running["waiting"].astype(bool)]


def _left_out(report):
    return {"what": "; ".join(f"{what} ({why})" for what, why in report.missing_reasons.items())}


def capacity(samples, coin, bps):
    """Return the capacity, and what was sampled and filled at all."""
    row = tk.slippage.capacity(samples, bps, coin=coin, side="buy").iloc[0]
    own = samples[(samples["coin"] == coin) & samples["buy_slippage_bps"].notna()]
    sizes = own["amount_usd"]
    beyond = row["capacity_usd"] > sizes.max()
    assert (row["range"] == "above") == beyond
    ends = {"smallest_usd": sizes.min(), "largest_usd": sizes.max()}
    return {"capacity_usd": row["capacity_usd"], "range": row["range"], **ends}


def sentence_cost(market):
    buy, sell = _cost(market, "buy"), _cost(market, "sell")
    return {
        "size": 100_000,
        "coin": market.context["name"].item(),
        "buy": buy["cost_bps"],
        "buy_low": buy["low"],
        "buy_high": buy["high"],
        "sell": sell["cost_bps"],
        "sell_low": sell["low"],
        "sell_high": sell["high"],
    }


def sentence_misfit(market):
    groups = tk.slippage.fit(market.samples).groups
    return {"misfit": groups.loc[groups["side"] == "buy", "misfit"].item()}


def sentence_power(market):
    params = tk.slippage.fit(market.samples).params
    row = params[(params["side"] == "buy") & (params["name"] == "k")].iloc[0]
    return {"power": row["estimate"], "low": row["low"], "high": row["high"]}


def sentence_thin(market):
    """Return the size and side whose samples were missing most often."""
    names = ["buy_slippage_bps", "sell_slippage_bps"]
    missing = market.samples[names].isna().groupby(market.samples["amount_usd"]).mean()
    worst = missing.max(axis=1)
    return {"size": worst.idxmax(), "share": worst.max()}


sentence_left_out = _left_out


def sentence_twaps_hidden(market):
    assert market.running is None
    return {}


def sentence_twaps_none(market):
    assert _running(market).empty
    return {}


def sentence_twaps(market):
    return {"orders": len(_running(market))}


def sentence_twap_flow(market):
    px = market.context["mark_px"].item()
    running = _running(market)
    usd = running["remaining_sz"] * px
    bought = running["is_buy"].astype(bool)
    row = tk.twaps.pressure(market.running, market.context).iloc[0]
    return {
        "buy": usd[bought].sum(),
        "sell": usd[~bought].sum(),
        "net": row["net_usd_per_hour"],
    }


def sentence_limits_unknown(market):
    assert market.limits is None
    assert ":" in market.coin
    return {}


def sentence_limits_absent(market):
    assert market.limits.dex.empty
    return {}


def sentence_limits_none(market):
    assert ":" not in market.coin
    return {}


def sentence_dex_limits(market):
    dex = market.limits.dex
    return {
        "interest": dex["total_oi_cap"].item(),
        "transfer": dex["max_transfer_ntl"].item(),
    }


def sentence_coin_limit(market):
    return {"cap": market.limits.coins.set_index("coin").loc[market.coin, "oi_cap"]}


def headline_buying(market):
    row = _cost(market, "buy")
    shown = {"cost": row["cost_bps"], "low": row["low"], "high": row["high"]}
    return {"size": 100_000, **shown}


def headline_capacity(market):
    return {"bps": 10, "room": capacity(market.samples, market.coin, 10)}


def headline_half_spread(market):
    return {"half": market.samples.groupby("amount_usd")["half_spread_bps"].median().median()}


def headline_mark(market):
    return {"px": market.context["mark_px"].item()}


def headline_interest(market):
    return {"usd": (market.context["open_interest"] * market.context["mark_px"]).item()}


def headline_funding(market):
    return {"yearly": 24 * 365 * market.context["funding"].item()}
