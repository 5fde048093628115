"""The numbers of performance and of a comparison, computed again from the frames of accounts."""

import warnings
from functools import cached_property
from math import sqrt

import numpy as np
import pandas as pd
from scipy import stats

import toolkit as tk
from tests.reports.recomputed_wallet import WalletNumbers
from toolkit.errors import MissingColumns
from toolkit.plots.formats import short_address


class PerformanceNumbers:
    def __init__(self, wallet):
        self.wallet, self.results, self.frames = wallet, wallet.results, wallet.results.frames

    @cached_property
    def returns(self):
        returns = self.wallet.returns
        return [] if returns.empty else returns["return_"].dropna().tolist()

    n = property(lambda self: len(self.returns))
    total_return_value = property(lambda self: np.prod([1 + each for each in self.returns]) - 1)

    @property
    def drawdown_value(self):
        growth = np.cumprod([1.0, *(1 + each for each in self.returns)])
        return (growth / np.maximum.accumulate(growth) - 1).min()

    @cached_property
    def _sharpe(self):
        row = self.wallet.figures.set_index("figure").loc["sharpe"]
        return row["low"], np.mean(self.returns) / np.std(self.returns, ddof=1), row["high"]

    low = property(lambda self: self._sharpe[0])
    sharpe_value = property(lambda self: sqrt(365) * self._sharpe[1])
    high = property(lambda self: self._sharpe[2])
    missing = property(lambda self: self.wallet.curve["unrealised"].isna().sum())
    points = property(lambda self: len(self.wallet.curve))

    @property
    def flows(self):
        ledger = self.frames.ledger
        return ((ledger["type"] == "vaultWithdraw") & ledger["net_withdrawn_usd"].isna()).sum()

    @cached_property
    def _nets(self):
        frames = self.frames
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                trips = tk.pnl.round_trips(frames.fills, self.results.funding, account=frames.user)
            except MissingColumns:
                return pd.Series()
        return trips.loc[trips["status"].isin(["closed", "liquidated"]), "net"].dropna()

    trips_n = property(lambda self: len(self._nets))
    wins = property(lambda self: (self._nets > 0).sum())
    net = property(lambda self: self._nets.item())

    @cached_property
    def conditions(self):
        return {
            "no_trips": lambda: self._nets.empty,
            "amounts_unknown": lambda: self.lacks_amounts,
            "returns_unknown": lambda: not self.begins_with_account or not self.returns,
        }

    @property
    def lacks_amounts(self):
        names = ["closed_pnl", "fee", "start_position"]
        return self.frames.fills[names].isna().any(axis=None)

    @property
    def begins_with_account(self):
        return self.frames.start_ms == 0 and len(self.frames.fills) and len(self.frames.ledger)


class ComparisonNumbers:
    def __init__(self, comparison):
        self.wallets = [PerformanceNumbers(wallet) for wallet in comparison.wallets]
        self.counts = [len(wallet.frames.fills) for wallet in self.wallets]

    n = accounts_n = property(lambda self: len(self.counts))
    traders = property(lambda self: sum(count > 0 for count in self.counts))
    fills = property(lambda self: sum(self.counts))

    @property
    def volume(self):
        return sum(WalletNumbers(wallet.results).volume for wallet in self.wallets)

    @cached_property
    def _nets(self):
        """Return address -> net of accounts whose amounts are known, the highest first."""
        nets = {
            wallet.frames.user: WalletNumbers(wallet.results).net
            for wallet in self.wallets
            if not wallet.frames.fills[["closed_pnl", "fee"]].isna().any(axis=None)
        }
        return sorted(nets.items(), key=lambda item: (-item[1], item[0]))

    net_known = property(lambda self: len(self._nets))
    winners = property(lambda self: sum(net > 0 for _, net in self._nets))
    best = property(lambda self: short_address(self._nets[0][0]))
    best_net = property(lambda self: self._nets[0][1])
    worst = property(lambda self: short_address(self._nets[-1][0]))
    worst_net = property(lambda self: self._nets[-1][1])
    unknown = property(lambda self: self.n - len(self._nets))
    net = property(lambda self: None if self.unknown else sum(net for _, net in self._nets))

    @cached_property
    def _known(self):
        """The accounts whose rows begin with the account, and whose amounts are known."""
        known = [w for w in self.wallets if w.begins_with_account and not w.lacks_amounts]
        return [wallet for wallet in known if wallet.returns]

    known = property(lambda self: len(self._known))
    lowest = property(lambda self: min(wallet.total_return_value for wallet in self._known))
    highest = property(lambda self: max(wallet.total_return_value for wallet in self._known))

    @cached_property
    def _ranked(self):
        known = [wallet for wallet in self._known if wallet.n > 2]
        return sorted(known, key=lambda wallet: wallet.sharpe_value, reverse=True)

    first = property(lambda self: short_address(self._ranked[0].frames.user))
    others = property(lambda self: len(self._ranked) - 1)

    @property
    def overlaps(self):
        best, *others = self._ranked
        return sum(one.low <= best.high and one.high >= best.low for one in others)

    @cached_property
    def _p_values(self):
        samples = [wallet.returns for wallet in self._known if wallet.n >= 20]
        return sorted(stats.ttest_1samp(one, 0, alternative="greater").pvalue for one in samples)

    discoveries_n = no_discoveries_n = property(lambda self: len(self._p_values))
    rate = 0.05

    @property
    def found(self):
        """Benjamini and Hochberg: the largest number of accounts below the line through 0."""
        p = self._p_values
        below = [rank for rank, each in enumerate(p, 1) if each <= self.rate * rank / len(p)]
        return max(below, default=0)

    @cached_property
    def conditions(self):
        return {
            "all_traded": lambda: all(self.counts),
            "returns_unknown": lambda: not self._known,
            "no_overlap": lambda: self.overlaps == 0,
            "no_discoveries": lambda: self.found == 0,
        }
