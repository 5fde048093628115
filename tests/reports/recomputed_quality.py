"""The values of the market-quality report, recomputed from its frames."""

from typing import Any

import toolkit as tk

Values = dict[str, Any]


def _ranked(quality):
    """Return what buying 100,000 USD of each market costs, the cheapest first."""
    costs = tk.slippage.cost(quality.samples, 100_000, side="buy").set_index("coin")["cost_bps"]
    return costs.reindex(quality.contexts["name"]).sort_values(kind="stable").dropna()


def _which(quality):
    which = "chosen" if quality.is_chosen else "largest by volume"
    return {"markets": len(quality.contexts), "which": which}


def sentence_ends(quality):
    costs = _ranked(quality)
    return {
        "size": 100_000,
        "best": costs.iloc[0],
        "best_coin": costs.index[0],
        "worst": costs.iloc[-1],
        "worst_coin": costs.index[-1],
        "times": costs.iloc[-1] / costs.iloc[0],
        **_which(quality),
    }


def sentence_thin(quality):
    million = quality.samples[quality.samples["amount_usd"] == 1_000_000]
    missing = million["buy_slippage_bps"].isna().groupby(million["coin"]).mean()
    often = [coin for coin in _ranked(quality).index if missing.get(coin, 0) > 0.01]
    return {"size": 1_000_000, "coins": ", ".join(often)}


def sentence_left_out(quality):
    return {"what": "; ".join(f"{what} ({why})" for what, why in quality.missing_reasons.items())}


def sentence_no_check(quality):
    assert quality.depth is None or quality.depth.empty
    return {}


def sentence_check(quality):
    held = tk.depth.consistency(quality.depth, quality.samples, max_age=60.0)["consistent"]
    return {"samples": held.notna().sum(), "agreeing": (held == True).sum()}  # noqa: E712


def headline_cheapest(quality):
    costs = _ranked(quality)
    shown = {"coin": costs.index[0], "size": 100_000, "cost": costs.iloc[0]}
    return {**shown, **_which(quality)}


def headline_dearest(quality):
    costs = _ranked(quality)
    shown = {"coin": costs.index[-1], "size": 100_000, "cost": costs.iloc[-1]}
    return {**shown, **_which(quality)}


def headline_half_spread(quality):
    each = quality.samples.groupby(["coin", "amount_usd"])["half_spread_bps"].median()
    return {"half": each.groupby("coin").median().median()}
