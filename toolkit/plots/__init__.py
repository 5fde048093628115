"""Plots of results: one function for each, drawn with matplotlib, without pyplot.

Every function takes a result of an analysis helper. A function that draws one panel takes ``ax=``
and returns the matplotlib Axes. A function that draws several panels returns a Figure; with ``ax=``
it draws the first panel alone and returns the Axes.

Plots have a light and a dark theme, mark simulated data, and have an alternative text (`alt`). A
notebook shows the plot if a cell ends in it. In a script, ``ax.figure.savefig(...)`` writes it.
"""

from toolkit.installation import explain_missing
from toolkit.public_names import publish_names

with explain_missing("plots"):
    from toolkit.plots.accounts import lorenz_curve, migration_map, positioning
    from toolkit.plots.builders import (
        builder_activity,
        builder_cohorts,
        builder_routing,
        lifetime_value,
    )
    from toolkit.plots.depth import depth_profile, resilience
    from toolkit.plots.equity import equity_curve, positions_over_time
    from toolkit.plots.execution import maker_days, markout, shortfall, spreads
    from toolkit.plots.funding import (
        basis,
        carry,
        funding_accrual,
        funding_by_coin,
        funding_over_time,
    )
    from toolkit.plots.liquidations import cascade, liquidation_history, liquidation_map
    from toolkit.plots.notebook import alt
    from toolkit.plots.orders import fill_probability, fill_times, order_mix, order_transitions
    from toolkit.plots.performance import growth_curve, leaderboard, return_calendar, skill
    from toolkit.plots.pnl import cumulative_pnl, trip_returns, waterfall
    from toolkit.plots.slippage import slippage_curve, slippage_fit, slippage_heatmap
    from toolkit.plots.staking import auction_line, validator_ranks, validator_yields
    from toolkit.plots.themes import use
    from toolkit.plots.trades import counterparties, impact, toxicity
    from toolkit.plots.twaps import twap_adherence, twap_pressure, twap_quality

__all__ = [
    "alt",
    "auction_line",
    "basis",
    "builder_activity",
    "builder_cohorts",
    "builder_routing",
    "carry",
    "cascade",
    "counterparties",
    "cumulative_pnl",
    "depth_profile",
    "equity_curve",
    "fill_probability",
    "fill_times",
    "funding_accrual",
    "funding_by_coin",
    "funding_over_time",
    "growth_curve",
    "impact",
    "leaderboard",
    "lifetime_value",
    "liquidation_history",
    "liquidation_map",
    "lorenz_curve",
    "maker_days",
    "markout",
    "migration_map",
    "order_mix",
    "order_transitions",
    "positioning",
    "positions_over_time",
    "resilience",
    "return_calendar",
    "shortfall",
    "skill",
    "slippage_curve",
    "slippage_fit",
    "slippage_heatmap",
    "spreads",
    "toxicity",
    "trip_returns",
    "twap_adherence",
    "twap_pressure",
    "twap_quality",
    "use",
    "validator_ranks",
    "validator_yields",
    "waterfall",
]

publish_names(__name__)
