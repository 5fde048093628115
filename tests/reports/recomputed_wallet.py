"""The numbers of a wallet report, computed again from its frames."""

from collections import defaultdict
from functools import cached_property

import numpy as np
import pandas as pd

import toolkit as tk
from toolkit.plots.formats import short_address
from toolkit.rules.directions import CONVERSIONS

HOUR = 3_600_000


def is_perp(fills):
    return ~fills["coin"].str.contains("^[@#]|/")


class WalletNumbers:
    """The number of each place: `volume` in every sentence, or `forced_closed` in `forced`."""

    def __init__(self, results):
        frames = results.frames
        self.results, self.frames = results, frames
        names = ("px", "sz", "closed_pnl", "fee", "builder_fee", "deployer_fee", "start_position")
        self.rows = frames.fills.astype(dict.fromkeys(names, "float64"))
        self.rows["usd"] = self.rows["px"] * self.rows["sz"]
        self.rows["hour"] = self.rows["time"].astype("datetime64[ms, UTC]").astype("int64") // HOUR
        in_token = ~is_perp(self.rows) & (self.rows["side"] == "B")
        self.in_cost = self.rows[in_token & (self.rows["fee_token"] != "USDC")]
        self.others = self.rows.drop(self.in_cost.index)

    # The result.

    @cached_property
    def volume(self):
        return self.rows.loc[~self.rows["dir"].isin(CONVERSIONS), "usd"].sum()

    @cached_property
    def volume_fills(self):
        return (~self.rows["dir"].isin(CONVERSIONS)).sum()

    @cached_property
    def closed(self):
        return self.rows["closed_pnl"].sum()

    @cached_property
    def fees(self):
        """All fees, negative where paid; those of tokens bought on the spot are in their cost."""
        return -self.others["fee"].sum()

    @cached_property
    def fees_in_cost_value(self):
        return -(self.in_cost["px"] * self.in_cost["fee"]).sum()

    @cached_property
    def rate(self):
        return 1e4 * (self.fees + self.fees_in_cost_value) / self.volume

    @cached_property
    def funding(self):
        if self.frames.funding is None or self.frames.funding.empty:
            return None
        ends = pd.to_datetime([self.frames.start_ms, self.frames.end_ms], unit="ms", utc=True)
        rows = self.frames.funding
        return rows.loc[rows["time"].between(*ends), "usdc"].astype("float64").sum()

    @cached_property
    def net(self):
        return self.closed + self.fees + (self.funding or 0)

    @cached_property
    def _flows(self):
        return tk.ledger.flows(self.frames.ledger, self.frames.user)

    @cached_property
    def cash(self):
        return self._flows["perp"].astype("float64").sum()

    @cached_property
    def amounts(self):
        return (~self._flows["known"]).sum()

    @cached_property
    def updates(self):
        return len(self.frames.ledger)

    @cached_property
    def fills(self):
        return len(self.rows)

    def missing(self, *columns):
        return self.rows[[*columns]].isna().any(axis=1).sum()

    net_unknown_missing = property(lambda self: self.missing("closed_pnl", "fee"))
    closed_unknown_missing = unclosed = property(lambda self: self.missing("closed_pnl"))
    fees_unknown_missing = unpaid = property(lambda self: self.missing("fee"))
    unplaced = property(lambda self: self.missing("start_position"))

    @cached_property
    def positions_unknown_missing(self):
        return self.rows.loc[is_perp(self.rows), "start_position"].isna().sum()

    @cached_property
    def _at_par(self):
        tokens = self.others["fee_token"]
        return tokens[tokens.notna() & (tokens != "USDC")]

    at_par_fills = property(lambda self: len(self._at_par))
    at_par_tokens = property(lambda self: ", ".join(sorted(set(self._at_par))))

    @cached_property
    def what(self):
        return "; ".join(f"{what} ({why})" for what, why in self.frames.missing_reasons.items())

    # Funding and the hours of positions.

    @cached_property
    def _hours(self):
        """Walk the fills of each perp from hour to hour: (coin, hour) -> position, if not 0."""
        open_ = {}
        for coin, rows in self.rows[is_perp(self.rows)].groupby("coin", sort=False):
            signed = rows["sz"].where(rows["side"] == "B", -rows["sz"])
            after = (rows["start_position"] + signed).round(9).tolist()
            # A fill of the first millisecond of an hour is after its payment.
            hours = [-(-stamp.value // 10**6 // HOUR) for stamp in rows["time"]]
            hours = [
                hour + (stamp.value // 10**6 % HOUR == 0)
                for hour, stamp in zip(hours, rows["time"], strict=True)
            ]
            ends = [*hours[1:], self.frames.end_ms // HOUR + 1]
            for first, end, position in zip(hours, ends, after, strict=True):
                open_ |= {(coin, hour): position for hour in range(first, end) if position}
        return open_

    @cached_property
    def _paid(self):
        rows = self.frames.funding
        hours = [stamp.value // 10**6 // HOUR for stamp in rows["time"]]
        sizes = rows["szi"].astype("float64").round(9)
        return dict(zip(zip(rows["coin"], hours, strict=True), sizes, strict=True))

    @cached_property
    def _both(self):
        return self._hours.keys() & self._paid.keys()

    held = property(lambda self: len(self._hours))
    covered = property(lambda self: len(self._both))
    beyond = property(lambda self: len(self._paid) - len(self._both))
    uncovered_missing = property(lambda self: len(self._hours) - len(self._both))
    funding_in_part_share = property(lambda self: self.covered / self.held)

    @cached_property
    def agreeing(self):
        return sum(self._hours[key] == self._paid[key] for key in self._both)

    @cached_property
    def carried(self):
        return (self.rows[is_perp(self.rows)].groupby("coin")["start_position"].first() != 0).sum()

    # The value and the checks.

    @cached_property
    def worth_value(self):
        return self.frames.states.accounts["account_value"].astype("float64").sum()

    @cached_property
    def unrealised(self):
        return self.frames.states.positions["unrealized_pnl"].astype("float64").sum()

    @property
    def residual(self):
        return self.results.reconciliation["residual"]

    parts_residual = apart = 0

    @cached_property
    def causes(self):
        return self.results.reconciliation["causes"] or "the cause is not known"

    @cached_property
    def _audit(self):
        return tk.pnl.audit(self.frames.fills, self.frames.perps)

    recomputed_in_part_known = property(lambda self: self._audit["difference"].count())
    breaks = property(lambda self: self._audit["chain_break"].sum())

    # Liquidations.

    @cached_property
    def _forced(self):
        own = self.rows["liquidated_user"].astype("str").str.lower() == self.frames.user.lower()
        return self.rows[own | self.rows["dir"].str.startswith("Liquidated")]

    @cached_property
    def _deleveraged(self):
        others = self.rows.drop(index=self._forced.index)
        return others[others["dir"] == "Auto-Deleveraging"]

    forced_orders = property(lambda self: self._forced["oid"].nunique())
    forced_coins = property(lambda self: self._forced["coin"].nunique())
    forced_closed = property(lambda self: self._forced["closed_pnl"].sum())
    deleveraged_orders = property(lambda self: self._deleveraged["oid"].nunique())
    deleveraged_coins = property(lambda self: self._deleveraged["coin"].nunique())
    deleveraged_closed = property(lambda self: self._deleveraged["closed_pnl"].sum())
    moments = property(lambda self: self._forced["time"].nunique())

    @cached_property
    def forced_both_share(self):
        usd = self._forced.groupby("liquidation_method")["usd"].sum()
        return usd.get("backstop", 0) / usd.sum()

    @cached_property
    def _largest(self):
        """The fills of the millisecond in which liquidations closed the most."""
        return self._forced[
            self._forced["time"] == self._forced.groupby("time")["usd"].sum().idxmax()
        ]

    @cached_property
    def _moment(self):
        return self._largest["time"].iloc[0]

    time = property(lambda self: f"{self._moment:%Y-%m-%d %H:%M}")

    @cached_property
    def _order(self):
        """The fills of the largest order in it."""
        usd = self._largest.groupby("oid", sort=False)["usd"].sum()
        return self._largest[self._largest["oid"] == usd.idxmax()]

    @cached_property
    def _prices(self):
        """Return the entry price and the price of the order."""
        sign = 1 if self._order["side"].iloc[0] == "A" else -1
        usd, size = self._order["usd"].sum(), self._order["sz"].sum()
        return (usd - sign * self._order["closed_pnl"].sum()) / size, usd / size

    forced_most_coin = property(lambda self: self._order["coin"].iloc[0])
    forced_most_usd = property(lambda self: self._order["usd"].sum())

    @cached_property
    def side(self):
        return "long" if self._order["side"].iloc[0] == "A" else "short"

    @cached_property
    def distance(self):
        entry_px, px = self._prices
        return abs(px - entry_px) / entry_px

    @cached_property
    def place(self):
        entry_px, px = self._prices
        return "below" if px < entry_px else "above"

    @cached_property
    def capital(self):
        """Cash, closed PnL and fees before the liquidation."""
        before = self.rows[self.rows["time"] < self._moment]
        ledger = self.frames.ledger[self.frames.ledger["time"] < self._moment]
        cash = ledger["usdc"].astype("float64").sum()
        return cash + before["closed_pnl"].sum() - before["fee"].sum()

    @cached_property
    def _opened(self):
        """The first fill of each coin, which states the whole position."""
        return self._largest.drop_duplicates("coin")

    positions = property(lambda self: len(self._opened))

    @cached_property
    def entry(self):
        sign = np.where(self._opened["side"] == "A", 1, -1)
        px = self._opened["px"] - sign * self._opened["closed_pnl"] / self._opened["sz"]
        return (self._opened["start_position"].abs() * px).sum()

    forced_leverage_times = property(lambda self: self.entry / self.capital)

    @cached_property
    def _margin(self):
        ledger = self.frames.ledger
        own = ledger[(ledger["type"] == "liquidation") & (ledger["time"] == self._moment)]
        return own.iloc[0]

    mode = property(lambda self: self._margin["leverage_type"].lower())
    forced_margin_value = property(lambda self: self._margin["account_value"])
    forced_margin_usd = property(lambda self: self._margin["liquidated_ntl_pos"])

    @cached_property
    def forced_margin_times(self):
        return self.forced_margin_usd / self.forced_margin_value

    @cached_property
    def loss(self):
        return self._largest["fee"].sum() - self._largest["closed_pnl"].sum()

    forced_loss_share = property(lambda self: self.loss / self.capital)

    # The reasons.

    @cached_property
    def share(self):
        """The share of the volume that rested in the book."""
        return (
            self.rows.loc[~self.rows["crossed"].astype("bool"), "usd"].sum()
            / self.rows["usd"].sum()
        )

    @cached_property
    def _matched(self):
        """What was bought and sold in equal amounts within an hour, and its gain."""
        keys = ["coin", "hour", "side"]
        sums = self.rows[is_perp(self.rows)].groupby(keys)[["sz", "usd"]].sum().unstack()
        size = sums["sz"].min(axis=1, skipna=False)
        bought, sold = (size * sums["usd"][side] / sums["sz"][side] for side in "BA")
        return bought.sum(), (sold - bought).sum()

    matched_usd = property(lambda self: self._matched[0])
    gain = property(lambda self: self._matched[1])
    matched_rate = property(lambda self: 1e4 * self.gain / self.matched_usd)
    rest = property(lambda self: self.closed + self.unrealised - self.gain)

    @cached_property
    def _routed(self):
        """The fees and the volume of each builder; "" if the builder is not named."""
        latest = self.frames.latest
        named = [] if latest is None else latest.dropna(subset="builder")[["oid", "builder"]]
        names = dict(np.asarray(named).tolist())
        sums = defaultdict(lambda: np.zeros(2))
        for fill in self.others[self.others["builder_fee"] > 0].itertuples():
            sums[names.get(fill.oid, "")] += [-fill.builder_fee, fill.usd]
        return dict(sums)

    paid = property(lambda self: sum(paid for paid, _ in self._routed.values()))
    usd = property(lambda self: sum(usd for _, usd in self._routed.values()))
    builders_share = builder_share = property(lambda self: self.usd / self.volume)
    builders_rate = builder_rate = property(lambda self: 1e4 * self.paid / self.usd)
    builder = property(lambda self: short_address(self._most[0]))
    builder_most_paid = property(lambda self: self._most[1][0])
    builder_most_usd = property(lambda self: self._most[1][1])
    builder_most_rate = property(lambda self: 1e4 * self._most[1][0] / self._most[1][1])
    without_builders_net = property(lambda self: self.net - self.paid)

    @cached_property
    def _most(self):
        return min(self._routed.items(), key=lambda item: item[1][0])

    @cached_property
    def own(self):
        parts = self.others[["builder_fee", "deployer_fee"]].fillna(0).sum(axis=1)
        fees = self.others["fee"] - parts
        return -1e4 * fees[fees > 0].sum() / self.volume

    def _nets(self, by):
        """Return closed PnL, fees and funding of each coin or day."""
        rows = self.others.assign(day=self.others["time"].dt.floor("D"))
        nets = (rows["closed_pnl"] - rows["fee"]).groupby(rows[by]).sum()
        if len(self.in_cost):
            bought = self.in_cost.assign(day=self.in_cost["time"].dt.floor("D"))
            nets = nets.add(bought.groupby(by)["closed_pnl"].sum(), fill_value=0)
        if self.funding is not None:
            paid = self.frames.funding.assign(day=self.frames.funding["time"].dt.floor("D"))
            paid = paid["usdc"].astype("float64").groupby(paid[by]).sum()
            nets = nets.add(paid, fill_value=0)
        return nets[[not str(name).startswith("#") for name in nets.index]]

    coin_gain_coin = property(lambda self: self._nets("coin").idxmax())
    coin_gain_net = property(lambda self: self._nets("coin").max())
    coin_loss_coin = property(lambda self: self._nets("coin").idxmin())
    coin_loss_net = property(lambda self: self._nets("coin").min())
    best_day_day = property(lambda self: f"{self._nets('day').idxmax():%Y-%m-%d}")
    best_day_net = property(lambda self: self._nets("day").max())
    worst_day_day = property(lambda self: f"{self._nets('day').idxmin():%Y-%m-%d}")
    worst_day_net = property(lambda self: self._nets("day").min())

    # Sentences without numbers, and when they are true.

    @cached_property
    def conditions(self):
        return {
            "no_fills": lambda: self.rows.empty,
            "all_covered": lambda: self._hours == self._paid,
            "funding_complete": lambda: self._hours.keys() == self._paid.keys(),
            "funding_missing": lambda: self._hours and not self._both,
            "funding_without_positions": lambda: not self._hours,
            "worth_exact": lambda: self.residual == 0,
            "forced_backstop": lambda: self.forced_both_share == 1,
            "forced_market": lambda: self.forced_both_share == 0,
            "rebates": lambda: self.fees > 0,
            "fees_received": lambda: self.rate > 0,
            "maker_most": lambda: self.share >= 0.5,
            "taker": lambda: self.share == 0,
        }
