"""The numbers of reports, computed again from their frames.

A class has the number of each place in the headlines of a report, and of some in its sentences.
"""

from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

import toolkit as tk
from toolkit.rules.directions import CONVERSIONS


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

    buy = property(lambda self: self._costs["buy"][0])
    buy_low = property(lambda self: self._costs["buy"][1])
    buy_high = property(lambda self: self._costs["buy"][2])
    sell = property(lambda self: self._costs["sell"][0])
    sell_low = property(lambda self: self._costs["sell"][1])
    sell_high = property(lambda self: self._costs["sell"][2])

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


class PositionNumbers:
    def __init__(self, positions):
        self.coin, self.market = positions.market.coin, positions.market
        rows = positions.frames.states and positions.frames.states.positions
        self.own = None if rows is None else rows[rows["coin"] == self.coin]

    holders = property(lambda self: self.own["user"].nunique())
    long = property(lambda self: self._interest(1))
    short = property(lambda self: self._interest(-1))
    long_effective_accounts = property(lambda self: 1 / (self._shares(1) ** 2).sum(min_count=1))
    short_effective_accounts = property(lambda self: 1 / (self._shares(-1) ** 2).sum(min_count=1))
    long_top_share = property(lambda self: self._shares(1).max())
    short_top_share = property(lambda self: self._shares(-1).max())

    def _interest(self, sign):
        return (sign * self.own["szi"]).clip(0).sum() / self.market.context["open_interest"].item()

    def _shares(self, sign):
        values = self.own.loc[self.own["szi"] * sign > 0, "position_value"]
        return values / values.sum() if len(values) else pd.Series([np.nan])


class QualityNumbers:
    size = 100_000

    def __init__(self, quality):
        self.quality, self.samples = quality, quality.samples

    @cached_property
    def _costs(self):
        """What buying 100,000 USD of each market costs, the cheapest first."""
        costs = tk.slippage.cost(self.samples, self.size, side="buy").set_index("coin")["cost_bps"]
        return costs.reindex(self.quality.contexts["name"]).sort_values(kind="stable").dropna()

    best = property(lambda self: self._costs.iloc[0])
    best_coin = property(lambda self: self._costs.index[0])
    worst = property(lambda self: self._costs.iloc[-1])
    worst_coin = property(lambda self: self._costs.index[-1])
    times = property(lambda self: self.worst / self.best)
    markets = property(lambda self: len(self.quality.contexts))
    which = property(lambda self: "chosen" if self.quality.is_chosen else "largest by volume")

    @property
    def half(self):
        each = self.samples.groupby(["coin", "amount_usd"])["half_spread_bps"].median()
        return each.groupby("coin").median().median()


class BuilderNumbers:
    def __init__(self, builder):
        self.address, self.all = builder.address, builder.fills
        traded = self.all[~self.all["dir"].isin(CONVERSIONS)]
        self.own = self.all[self.all["builder"] == self.address]
        forced = traded["dir"].str.contains("^Liquidated|^Auto|^Settlement|^Net Child|^Spot Dust")
        forced |= traded["liquidated_user"] == traded["user"]
        alone = traded["builder"].isna() & (traded["twap_id"].notna() | forced)
        self.routable = traded[~alone]  # what a builder could have had

    @staticmethod
    def _usd(fills):
        return (fills["px"] * fills["sz"]).sum()

    volume = property(lambda self: self._usd(self.own))
    fills = property(lambda self: len(self.own))
    all_volume = property(lambda self: self._usd(self.all[~self.all["dir"].isin(CONVERSIONS)]))
    revenue = property(lambda self: self.own["builder_fee"].sum())
    could = property(lambda self: self._usd(self.routable))
    rate = property(lambda self: self.volume / self.could)
    fee_bps = property(lambda self: 1e4 * self.revenue / self.volume)
    unnamed = property(lambda self: self.all["user"].isna().sum())
    all_fills = property(lambda self: len(self.all))
    users = property(lambda self: self.all["user"].nunique())
    through = property(lambda self: self.own["user"].nunique())
    direct = property(lambda self: self._usd(self.routable[self.routable["builder"].isna()]))
    low = property(lambda self: self._rate["low"])
    high = property(lambda self: self._rate["high"])

    @property
    def elsewhere(self):
        builders = self.all["builder"]
        return self._usd(self.all[builders.notna() & (builders != self.address)])

    @property
    def _rate(self):
        return tk.builders.attach_rate(self.all, self.address).iloc[0]


class WalletNumbers:
    def __init__(self, results):
        self.results, self.account = results, results.account
        names = ("px", "sz", "closed_pnl", "fee")
        self.rows = self.account.fills.astype(dict.fromkeys(names, "float64"))
        self.rows["usd"] = self.rows["px"] * self.rows["sz"]
        own = self.rows["liquidated_user"].astype("str").str.lower() == self.account.address.lower()
        is_forced = own | self.rows["dir"].str.startswith("Liquidated")
        self._forced = self.rows[is_forced]
        self._deleveraged = self.rows[~is_forced & (self.rows["dir"] == "Auto-Deleveraging")]

    @property
    def _in_cost(self):
        """The fills whose fee is paid in the token that they buy: it is in the token's cost."""
        in_token = self.rows["coin"].str.contains("^[@#]|/") & (self.rows["side"] == "B")
        return in_token & (self.rows["fee_token"] != "USDC")

    _traded = property(lambda self: self.rows[~self.rows["dir"].isin(CONVERSIONS)])
    volume = property(lambda self: self._traded["usd"].sum())
    traded = property(lambda self: len(self._traded))
    fills = property(lambda self: len(self.rows))
    closed_pnl = property(lambda self: self.rows["closed_pnl"].sum())
    fees = property(lambda self: -self.rows.loc[~self._in_cost, "fee"].sum())
    net = property(lambda self: self.closed_pnl + self.fees + (self.funding or 0))
    updates = property(lambda self: len(self.account.ledger))
    ledger = property(lambda self: self._flows["perp"].astype("float64").sum())
    unknown = property(lambda self: (~self._flows["known"]).sum())
    unclosed = property(lambda self: self._missing("closed_pnl"))
    unpaid = property(lambda self: self._missing("fee"))
    unvalued = property(lambda self: self._missing("closed_pnl", "fee"))
    unplaced = property(lambda self: self._missing("start_position"))
    covered_share = property(
        lambda self: self.results.coverage.covered / self.results.coverage.held
    )
    worth = property(lambda self: self._state_sum("accounts", "account_value"))
    unrealised = property(lambda self: self._state_sum("positions", "unrealized_pnl"))
    residual = property(lambda self: self.results.reconciliation["residual"])
    causes = property(
        lambda self: self.results.reconciliation["causes"] or "the cause is not known"
    )
    off = apart = 0
    known = property(lambda self: self._audit["difference"].count())
    breaks = property(lambda self: self._audit["chain_break"].sum())
    forced_orders = property(lambda self: self._forced["oid"].nunique())
    forced_coins = property(lambda self: self._forced["coin"].nunique())
    forced_closed = property(lambda self: self._forced["closed_pnl"].sum())
    deleveraged_orders = property(lambda self: self._deleveraged["oid"].nunique())
    deleveraged_coins = property(lambda self: self._deleveraged["coin"].nunique())
    deleveraged_closed = property(lambda self: self._deleveraged["closed_pnl"].sum())

    @property
    def rate(self):
        in_cost = self.rows[self._in_cost]
        return 1e4 * (self.fees - (in_cost["px"] * in_cost["fee"]).sum()) / self.volume

    @property
    def funding(self):
        rows = self.account.funding
        if rows is None or rows.empty:
            found = self.results.coverage
            return None if rows is None or found is None or found.held else 0
        ends = pd.to_datetime([self.account.start_ms, self.account.end_ms], unit="ms", utc=True)
        return rows.loc[rows["time"].between(*ends), "usdc"].astype("float64").sum()

    @property
    def _flows(self):
        return tk.ledger.flows(self.account.ledger, self.account.address)

    @cached_property
    def _audit(self):
        return tk.pnl.audit(self.account.fills, self.account.perps)

    def _missing(self, *columns):
        return self.rows[[*columns]].isna().any(axis=1).sum()

    @property
    def gain(self):
        """What the account is worth now, less what came from outside."""
        outside = self.results.attribution()["ledger"].iloc[0]
        return self._state_sum("accounts", "account_value") - outside

    def _state_sum(self, frame, column):
        return getattr(self.account.states, frame)[column].astype("float64").sum()

    @cached_property
    def conditions(self):
        """When the sentences without numbers are true."""
        found = self.results.coverage
        return {
            "The account made no fills": lambda: self.rows.empty,
            "Each hour has its funding row": lambda: found.held == found.covered == found.agreeing,
            "covers every position hour": lambda: found.is_complete,
            "no funding rows for its position hours": lambda: found.held and not found.covered,
            "There are no funding rows, and": lambda: not len(self.account.funding),
            "no position at a full hour": lambda: not found.held,
            "Its rows explain the value": lambda: self.residual == 0,
            "Rebates were more": lambda: self.fees > 0,
            "received: rebates": lambda: self.rate > 0,
        }


class ReasonNumbers:
    """Why a wallet gained or lost: of the fills whose fees are known."""

    def __init__(self, results):
        self.results, self._fills = results, results.account.fills

    @property
    def share(self):
        """The share of the volume that rested in the book."""
        usd = self._fills["px"].astype("float64") * self._fills["sz"].astype("float64")
        return usd[~self._fills["crossed"].astype("bool")].sum() / usd.sum()

    def _nets(self, by):
        rows = self.results.attribution(by=by)
        return rows[~rows[by].astype("str").str.startswith("#")].set_index(by)["net"].astype(float)

    best_coin = property(lambda self: self._nets("coin").idxmax())
    best_net = property(lambda self: self._nets("coin").max())
    worst_coin = property(lambda self: self._nets("coin").idxmin())
    worst_net = property(lambda self: self._nets("coin").min())
    best_day = property(lambda self: f"{self._nets('day').idxmax():%Y-%m-%d}")
    best_day_net = property(lambda self: self._nets("day").max())
    worst_day = property(lambda self: f"{self._nets('day').idxmin():%Y-%m-%d}")
    worst_day_net = property(lambda self: self._nets("day").min())


class ComparisonNumbers:
    def __init__(self, comparison):
        self.wallets = [WalletNumbers(wallet) for wallet in comparison.wallets]

    @property
    def gain(self):
        is_known = all(
            w.account.states and w.fills and w.rows["fee"].notna().all() for w in self.wallets
        )
        return sum(wallet.gain for wallet in self.wallets) if is_known else None

    n = property(lambda self: len(self.wallets))
    traders = property(lambda self: sum(wallet.fills > 0 for wallet in self.wallets))
    fills = property(lambda self: sum(wallet.fills for wallet in self.wallets))
    volume = property(lambda self: sum(wallet.volume for wallet in self.wallets))

    @property
    def net(self):
        is_known = not any(wallet.unvalued for wallet in self.wallets)
        return sum(wallet.net for wallet in self.wallets) if is_known else None


class PerformanceNumbers:
    """The value links from point to point: a flow is at its point, and changes no return."""

    def __init__(self, wallet):
        value = wallet.value
        self.n = len(wallet.returns)
        if not self.n:
            return
        self.points, self.missing = len(value), value["value"].isna().sum()
        self.part = wallet.value["part"].iloc[0]
        rows = value.assign(flows=value["flows"].cumsum()).dropna(subset="value")
        self.gain, self._growth = 0.0, [1.0]
        for (at, before), (place, after) in pairwise(rows.iterrows()):
            moved = after["flows"] - before["flows"]
            gain = after["value"] - before["value"] - moved
            is_late = place == at + 1 and before["value"] > 0.01
            capital = before["value"] + (0 if is_late else max(moved, 0))
            self.gain += gain
            self._growth.append(self._growth[-1] * (1 + (gain / capital if capital > 0.01 else 0)))

    total_return = property(lambda self: self._growth[-1] - 1)

    @property
    def drawdown(self):
        growth = np.array(self._growth)
        return (growth / np.maximum.accumulate(growth) - 1).min()
