"""The numbers of reports on markets, their quality and builders, computed from their frames."""

from functools import cached_property

import numpy as np
import pandas as pd

import toolkit as tk
from toolkit.rules.directions import CONVERSIONS

SHOCKS = [-0.3, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2, 0.3]


class MarketNumbers:
    size, bps = 100_000, 10

    def __init__(self, market):
        self.market, self.context = market, market.context.iloc[0]
        self.coin = self.context["name"]

    @cached_property
    def _costs(self):
        """The mean of the samples of each side, with the interval that the helper gives for it."""
        samples, costs = self.market.samples, {}
        for side in ("buy", "sell"):
            row = tk.slippage.cost(samples, self.size, side=side).iloc[0]
            own = samples.loc[samples["amount_usd"] == self.size, f"{side}_slippage_bps"]
            mean = own.mean() if own.notna().all() else row["cost_bps"]
            costs[side] = (mean, row["low"], row["high"])
        return costs

    buy = cost = property(lambda self: self._costs["buy"][0])
    buy_low = buying_low = property(lambda self: self._costs["buy"][1])
    buy_high = buying_high = property(lambda self: self._costs["buy"][2])
    sell = property(lambda self: self._costs["sell"][0])
    sell_low = property(lambda self: self._costs["sell"][1])
    sell_high = property(lambda self: self._costs["sell"][2])

    @cached_property
    def _fit(self):
        return tk.slippage.fit(self.market.samples)

    @property
    def misfit(self):
        return self._fit.groups.set_index("side").loc["buy", "misfit"]

    @property
    def _power(self):
        return self._fit.params.set_index(["side", "name"]).loc[("buy", "k")]

    power = property(lambda self: self._power["estimate"])
    power_low = property(lambda self: self._power["low"])
    power_high = property(lambda self: self._power["high"])

    @property
    def _thin(self):
        """Return the missing share of the side with more missing samples, by size."""
        samples = self.market.samples
        missing = samples[["buy_slippage_bps", "sell_slippage_bps"]].isna()
        return missing.groupby(samples["amount_usd"]).mean().max(axis=1)

    thin_size = property(lambda self: self._thin.idxmax())
    thin_share = property(lambda self: self._thin.max())

    @property
    def what(self):
        reasons = self.market.missing_reasons.items()
        return "; ".join(f"{what} ({why})" for what, why in reasons)

    @property
    def _running(self):
        return self.market.running[~self.market.running["waiting"].astype(bool)]

    orders = property(lambda self: len(self._running))

    def _remaining(self, is_buy):
        rows = self._running
        return (rows["remaining_sz"] * self.px)[rows["is_buy"].astype(bool) == is_buy].sum()

    twap_flow_buy = property(lambda self: self._remaining(True))
    twap_flow_sell = property(lambda self: self._remaining(False))

    @property
    def twap_flow_net(self):
        return tk.twaps.pressure(self.market.running, self.market.context)[
            "net_usd_per_hour"
        ].item()

    dex_limits_interest = property(lambda self: self.market.limits.dex["total_oi_cap"].item())
    transfer = property(lambda self: self.market.limits.dex["max_transfer_ntl"].item())

    @property
    def cap(self):
        return self.market.limits.coins.set_index("coin").loc[self.coin, "oi_cap"]

    @property
    def room(self):
        samples = self.market.samples
        row = tk.slippage.capacity(samples, self.bps, coin=self.coin, side="buy").iloc[0]
        sizes = samples.loc[samples["buy_slippage_bps"].notna(), "amount_usd"]
        assert (row["range"] == "above") == (row["capacity_usd"] > sizes.max())
        ends = {"smallest_usd": sizes.min(), "largest_usd": sizes.max()}
        return {"capacity_usd": row["capacity_usd"], "range": row["range"], **ends}

    @property
    def half(self):
        return self.market.samples.groupby("amount_usd")["half_spread_bps"].median().median()

    px = property(lambda self: self.context["mark_px"])
    usd = property(lambda self: self.context["open_interest"] * self.px)
    yearly = property(lambda self: 24 * 365 * self.context["funding"])

    @cached_property
    def conditions(self):
        market = self.market
        return {
            "twaps_hidden": lambda: market.running is None,
            "twaps_none": lambda: self._running.empty,
            "limits_unknown": lambda: market.limits is None and ":" in market.coin,
            "limits_absent": lambda: market.limits.dex.empty,
            "limits_none": lambda: ":" not in market.coin,
        }


class PositionNumbers:
    repeated = ("shock", "added")

    def __init__(self, positions):
        self.frames, self.market = positions.frames, positions.market
        self.coin, self.report = positions.market.coin, positions

    reason = property(lambda self: self.frames.reason)

    @property
    def _own(self):
        rows = self.frames.states.positions
        return rows[rows["coin"] == self.coin]

    accounts = shown_accounts = property(lambda self: self._own["user"].nunique())

    @property
    def no_position_accounts(self):
        return self.frames.states.accounts["user"].nunique()

    def _side(self, side):
        return self._own[self._own["szi"] * {"long": 1, "short": -1}[side] > 0]

    def _interest(self, side):
        return self._side(side)["szi"].abs().sum() / self.market.context["open_interest"].item()

    shown_long = property(lambda self: self._interest("long"))
    shown_short = property(lambda self: self._interest("short"))

    @property
    def shared(self):
        modes = self.frames.values.set_index("user")["mode"].reindex(self._own["user"].unique())
        return modes.isin(["unified", "portfolio margin"]).sum()

    def _run(self, shocks, **options):
        states, tiers = self.frames.states, self.frames.tiers
        if tiers is not None:
            options |= {"margin_tables": tiers, "max_leverage": self.frames.markets}
        fit = tk.slippage.fit(self.market.samples)
        return tk.liquidations.cascade(
            states.positions, states.accounts, fit, self.coin, shocks, **options
        ).params

    @cached_property
    def _alone(self):
        return self._run(SHOCKS, draws=99)

    quiet_low, quiet_high, together_shock = -0.3, 0.3, 0.2

    @property
    def _liquidated(self):
        """Return the changes by a fifth that liquidate somebody."""
        rows = self._alone
        return rows[(rows["shock"].abs() == 0.2) & (rows["accounts"] > 0)]

    @property
    def shock(self):
        """The numbers of each of several sentences."""
        names = {"shock": "shock", "accounts": "accounts", "forced_usd": "usd"}
        rows = self._liquidated[[*names]].rename(columns=names).assign(coin=self.coin)
        return rows.to_dict("records")

    @property
    def added(self):
        rows = self._liquidated[["estimate", "low", "high"]].sub(self._liquidated["shock"], axis=0)
        return (1e4 * rows.rename(columns={"estimate": "added"})).to_dict("records")

    @property
    def _spiral(self):
        row = self._alone.loc[self._alone["amplification"].idxmax()]
        assert np.isclose(row["estimate"], row["amplification"] * row["shock"])
        return row

    spiral_shock = property(lambda self: self._spiral["shock"])
    times = property(lambda self: self._spiral["amplification"])
    rounds = property(lambda self: self._spiral["rounds"])

    @cached_property
    def _together(self):
        return self._run([-0.2, 0.2], betas=1.0, draws=1)["forced_usd"].tolist()

    fall = property(lambda self: self._together[0])
    rise = property(lambda self: self._together[1])

    @cached_property
    def _largest_net(self):
        """Return the class of size with the largest net position."""
        states, values = self.frames.states, self.frames.values
        accounts = states.accounts
        if values is not None:
            accounts = values.rename(columns={"value": "account_value"})
        sums = accounts.groupby("user")["account_value"].sum()
        names = ["below 10k", "10k to 100k", "100k to 1M", "1M and more"]
        edges, rows = [-np.inf, 1e4, 1e5, 1e6, np.inf], self._own
        size = pd.cut(rows["user"].map(sums), edges, right=False, labels=names).astype("str")
        signed = np.sign(rows["szi"]) * rows["position_value"]
        table = rows.assign(size=size, signed=signed, gross=signed.abs()).groupby("size")
        table = table.agg(
            usd=("signed", "sum"), gross=("gross", "sum"), accounts=("user", "nunique")
        )
        # Without a difference in cents, the class with more accounts comes first.
        table = table.assign(cents=(100 * table["usd"].abs()).round())
        return table.sort_values(["cents", "accounts"], ascending=False).iloc[0]

    size = property(lambda self: self._largest_net.name)
    usd = property(lambda self: self._largest_net["usd"])
    largest_net_accounts = property(lambda self: self._largest_net["accounts"])
    net = property(lambda self: self._largest_net["usd"] / self._largest_net["gross"])
    largest_net_low = property(lambda self: self._class["low"])
    largest_net_high = property(lambda self: self._class["high"])

    @property
    def _class(self):
        return self.report.classes.set_index("size").loc[self.size]

    def _shares(self, side):
        values = self._side(side)["position_value"]
        return values / values.sum() if len(values) else pd.Series([np.nan])

    crowding_long = property(lambda self: 1 / (self._shares("long") ** 2).sum(min_count=1))
    crowding_short = property(lambda self: 1 / (self._shares("short") ** 2).sum(min_count=1))
    long_top = property(lambda self: self._shares("long").max())
    short_top = property(lambda self: self._shares("short").max())

    def _gain(self, side):
        rows = self._side(side)
        entry = (rows["szi"].abs() * rows["entry_px"]).sum()
        return 1e4 * rows["unrealized_pnl"].sum() / entry if len(rows) else None

    gains_long = property(lambda self: self._gain("long"))
    gains_short = property(lambda self: self._gain("short"))

    @cached_property
    def conditions(self):
        return {
            "positions_unknown": lambda: self.frames.states is None,
            "no_position": lambda: self._own.empty,
            "single_tiers": lambda: self.frames.tiers is None,
            "quiet": lambda: not self._alone["accounts"].any(),
            "spiral": lambda: self.times >= 1.01,
            "no_spiral": lambda: self._alone["accounts"].any() and self.times < 1.01,
            "no_law": lambda: self._liquidated["estimate"].isna().any(),
            "largest_net": lambda: self._largest_net["accounts"] > 1,
            "single_net": lambda: self._largest_net["accounts"] == 1,
        }


class QualityNumbers:
    size, thin_size = 100_000, 1_000_000

    def __init__(self, quality):
        self.quality, self.samples = quality, quality.samples

    @cached_property
    def _costs(self):
        """What buying 100,000 USD of each market costs, the cheapest first."""
        costs = tk.slippage.cost(self.samples, self.size, side="buy").set_index("coin")["cost_bps"]
        return costs.reindex(self.quality.contexts["name"]).sort_values(kind="stable").dropna()

    best = cheapest_cost = property(lambda self: self._costs.iloc[0])
    best_coin = cheapest_coin = property(lambda self: self._costs.index[0])
    worst = dearest_cost = property(lambda self: self._costs.iloc[-1])
    worst_coin = dearest_coin = property(lambda self: self._costs.index[-1])
    times = property(lambda self: self.worst / self.best)
    markets = property(lambda self: len(self.quality.contexts))
    which = property(lambda self: "chosen" if self.quality.is_chosen else "largest by volume")
    what = MarketNumbers.what

    @property
    def market(self):
        return self.quality

    @property
    def coins(self):
        million = self.samples[self.samples["amount_usd"] == self.thin_size]
        missing = million["buy_slippage_bps"].isna().groupby(million["coin"]).mean()
        return ", ".join(coin for coin in self._costs.index if missing.get(coin, 0) > 0.01)

    @cached_property
    def _consistent(self):
        depth = self.quality.depth
        return tk.depth.consistency(depth, self.samples, max_age=60.0)["consistent"].dropna()

    agreeing = property(lambda self: self._consistent.sum())
    check_samples = property(lambda self: len(self._consistent))

    @property
    def half(self):
        each = self.samples.groupby(["coin", "amount_usd"])["half_spread_bps"].median()
        return each.groupby("coin").median().median()

    @cached_property
    def conditions(self):
        return {"no_check": lambda: self.quality.depth is None or self.quality.depth.empty}


class BuilderNumbers:
    def __init__(self, builder):
        self.address, self.all = builder.address, builder.fills
        self.traded = self.all[~self.all["dir"].isin(CONVERSIONS)]
        self.own = self.all[self.all["builder"] == self.address]
        forced = self.traded["dir"].str.contains(
            "^Liquidated|^Auto|^Settlement|^Net Child|^Spot Dust"
        )
        forced |= self.traded["liquidated_user"] == self.traded["user"]
        alone = self.traded["builder"].isna() & (self.traded["twap_id"].notna() | forced)
        self.routable = self.traded[~alone]  # what a builder could have had

    @staticmethod
    def _usd(fills):
        return (fills["px"] * fills["sz"]).sum()

    volume = property(lambda self: self._usd(self.own))
    all_volume = property(lambda self: self._usd(self.traded))
    volume_fills = property(lambda self: len(self.own))
    revenue = property(lambda self: self.own["builder_fee"].sum())
    could = property(lambda self: self._usd(self.routable))
    rate = property(lambda self: self.volume / self.could)
    fee = property(lambda self: 1e4 * self.revenue / self.volume)
    unnamed = property(lambda self: self.all["user"].isna().sum())
    unnamed_fills = property(lambda self: len(self.all))
    users = property(lambda self: self.all["user"].nunique())
    through = property(lambda self: self.own["user"].nunique())
    direct = property(lambda self: self._usd(self.routable[self.routable["builder"].isna()]))

    @property
    def elsewhere(self):
        builders = self.all["builder"]
        return self._usd(self.all[builders.notna() & (builders != self.address)])

    @property
    def _rate(self):
        return tk.builders.attach_rate(self.all, self.address).iloc[0]

    low = property(lambda self: self._rate["low"])
    high = property(lambda self: self._rate["high"])
