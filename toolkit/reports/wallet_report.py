"""The wallet report: what one account earned, paid and traded.

The notebook ``notebooks/wallet.py`` has the prose, and calls these functions.
"""

import warnings
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import funding, performance, plots, pnl, slippage
from toolkit.client import Session
from toolkit.errors import HistoryWarning, MissingAmounts, MissingColumns, ReportFailed
from toolkit.fetch.account import Account
from toolkit.reports import blocks, report_frames
from toolkit.reports.example import example_account
from toolkit.reports.funding_coverage import compare_funding
from toolkit.times import Time

PARTS: Final = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding")
"""The parts whose sum is net."""
CLOSED_BY: Final = {"closed": "the account", "liquidated": "liquidation"}
"""Status of a complete round trip -> who closed it."""
_FEES: Final = ("trading_fee", "builder_fee", "deployer_fee", "rebate", "other_fees")


class WalletResults:
    """The results of a wallet report; each is computed once.

    Parameters
    ----------
    account : Account
        The account with its frames.
    marks : DataFrame, optional
        Prices over time, for positions that the account's own fills and funding do not price.

    Attributes
    ----------
    unvalued : int
        Number of fills without closed PnL or fee; if there are any, net is not known.
    unplaced_perps : int
        Number of perp fills without the position before them.
    coverage : FundingCoverage or None
        Coverage of funding; None without funding rows, or if a fill has no position before it.
    funding : DataFrame or None
        The funding rows; None if there are none, although there may have been positions.
    total : Series
        The attribution of the whole period.
    fees : float
        All fees with rebates, negative if paid; without fees in the cost of spot tokens.
    facts : dict
        The numbers that sentences state, by the name of their place.
    """

    def __init__(self, account: Account, marks: pd.DataFrame | None = None) -> None:
        self.account, self.marks = account, marks
        self._attributions: dict[str | None, pd.DataFrame] = {}
        fills, paid = account.fills, account.funding
        unknown = fills[["closed_pnl", "fee", "start_position"]].isna()
        closed, fee, position = (unknown[name] for name in unknown)
        self.unvalued = int((closed | fee).sum())
        self.unplaced_perps = int((position & report_frames.is_perp(fills["coin"])).sum())
        self.coverage, self.funding = None, paid
        if paid is not None and not self.unplaced_perps:
            self.coverage = compare_funding(account.prepared, paid, account.end_ms)
        if paid is not None and paid.empty and (self.coverage is None or self.coverage.held):
            self.funding = None
        self.total = total = self.attribution().iloc[0]
        self.fees = float(sum(total[name] for name in _FEES[:-1]))
        covered: dict[str, Any] = {} if self.coverage is None else self.coverage._asdict()
        if covered.get("held"):
            covered["covered_share"] = covered["covered"] / covered["held"]
        volume = float(total["volume"])
        self.facts = covered | {
            **total,
            "traded": total["fills"],
            "fills": len(fills),
            "updates": len(account.ledger),
            "unclosed": int(closed.sum()),
            "unpaid": int(fee.sum()),
            "unplaced": int(position.sum()),
            "unplaced_perps": self.unplaced_perps,
            "unvalued": self.unvalued,
            "fees": self.fees,
            # In basis points of volume, with the fees that spot buys paid in the bought token.
            "rate": 1e4 * (self.fees + float(total["fees_in_cost"])) / volume if volume else None,
            "unknown": total["unpriced_fees"] + total["unknown_flows"],
        }

    def attribution(self, by: str | None = None) -> pd.DataFrame:
        """Return the attribution of PnL. By coin it lacks the ledger, whose rows have no coin."""
        if by not in self._attributions:
            account, ends = self.account, dict[str, Any]()
            # Where fills may be missing, funding counts between the first and the last of them.
            if "may be missing" not in str(account.fills.attrs["toolkit"].get("history")):
                ends = {"start_time": account.start_ms, "end_time": account.end_ms}
            ledger = None if by == "coin" else account.ledger
            with warnings.catch_warnings(action="ignore", category=MissingAmounts):
                # The report states the missing amounts itself.
                self._attributions[by] = pnl.attribution(
                    account.prepared, self.funding, ledger, by=by, **ends
                )
        return self._attributions[by].copy(deep=False)

    def plot_rows(self, by: str | None = None) -> pd.DataFrame:
        """Return the attribution for a figure; no rows without fills, or if amounts are missing."""
        rows = self.attribution(by=by)
        return rows if self.total["fills"] and not self.unvalued else rows.iloc[:0]

    def mask_unknown(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows of an attribution; sums of missing amounts are missing, too."""
        is_partial = rows["missing_amounts"] > 0
        if not is_partial.any():
            return rows
        names = ["net", *(["closed_pnl"] if self.facts["unclosed"] else [])]
        names += [name for name in _FEES if name in rows and self.facts["unpaid"]]
        return rows.assign(
            **{name: rows[name].astype("object").mask(is_partial, None) for name in names}
        )

    @property
    def residual(self) -> float:
        """Net less the sum of its parts, to 1e-6 USD; 0 unless this program has an error."""
        return round(float(self.total["net"] - self.total[[*PARTS]].dropna().sum()), 6)

    @cached_property
    def reconciliation(self) -> pd.Series | None:
        """The account value explained by its rows; None if they do not begin with the account."""
        account = self.account
        if account.states is None or account.start_ms > 0:
            return None
        frames = (account.states, account.fills, account.funding, account.ledger)
        row: pd.Series = pnl.reconcile(None, *frames, account=account.address).iloc[0].copy()
        row["residual"] = round(row["residual"], 6)
        return row

    @cached_property
    def audit(self) -> pd.DataFrame | None:
        """The fills with recomputed closed PnL; None if columns for it are missing."""
        try:
            return pnl.audit(self.account.prepared, self.account.perps)
        except MissingColumns:
            return None

    @cached_property
    def slippage(self) -> pd.DataFrame:
        """Slippage by size of the coins with the largest volume; empty without samples."""
        samples = self.account.samples
        return pd.DataFrame() if samples is None or samples.empty else slippage.curve(samples)

    @cached_property
    def value(self) -> pd.DataFrame:
        """The value of the account over time; empty without fills that suffice for it."""
        account, states = self.account, self.account.states
        if account.fills.empty or self.unvalued or self.unplaced_perps:
            return pd.DataFrame()
        frames, parts = (account.prepared, self.funding, account.ledger), states and states[:2]
        return pnl.value(*frames, marks=self.marks, accounts=parts)

    @cached_property
    def returns(self) -> pd.DataFrame:
        """The returns by day; empty if they are not known."""
        if self.value.empty:
            return pd.DataFrame()
        with warnings.catch_warnings(action="ignore", category=HistoryWarning):
            # A sentence states the reason.
            rows = performance.returns(self.value)
        return rows if rows["return_"].notna().any() else pd.DataFrame()

    @property
    def reason(self) -> str:
        """Why returns are not known."""
        if self.account.fills.empty:
            return "the account has no fills"
        if self.value.empty:
            return "some fills do not state all amounts"
        reasons = self.value["reason"][self.value["reason"] != ""]
        return str(reasons.mode().iloc[0]) if len(reasons) else "the account had no capital"

    @cached_property
    def trips(self) -> pd.DataFrame:
        """The complete round trips; trips with the largest gain or loss are first."""
        with warnings.catch_warnings(action="ignore", category=(HistoryWarning, MissingAmounts)):
            try:
                rows = pnl.round_trips(self.account.prepared, self.funding)
            except MissingColumns:  # fills without amounts or without a price of their token
                return pd.DataFrame()
        rows = rows[rows["status"].isin(list(CLOSED_BY)) & rows["net"].notna()]
        return rows.sort_values("net", key=abs, ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def figures(self) -> pd.DataFrame:
        """The performance sheet; empty if there are neither returns nor trips."""
        if self.returns.empty:
            return performance.trip_sheet(self.trips) if len(self.trips) else pd.DataFrame()
        trips, costs = self.trips if len(self.trips) else None, self.attribution(by="day")
        return performance.sheet(self.returns, trips=trips, costs=costs)

    def figure(self, name: str) -> pd.Series:
        """Return the row of a performance figure."""
        row: pd.Series = self.figures[self.figures["figure"] == name].iloc[0]
        return row

    def source_frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        account, states = self.account, self.account.states
        return {
            "fills": account.fills,
            "latest fills": account.latest,
            "funding": account.funding,
            "ledger": account.ledger,
            "slippage": account.samples,
            "positions": states and states.positions,
        }

    def title(self) -> blocks.Block:
        """Return the title of the report."""
        account = self.account
        period, kind = (account.start_ms, account.end_ms), "Wallet report"
        times = (account.fills["time"], account.ledger["time"])
        return report_frames.make_title(kind, account.address, account.session, period, times)


def fetch_results(
    session: Session, user: str | None, start: Time = 0, end: Time | None = None
) -> WalletResults:
    """Fetch the frames of an account, and return the results of its report.

    Raise BadRequest if the address is malformed. Raise ReportFailed if there are no rows of the
    account.
    """
    account = report_frames.fetch_account(session, user or example_account(session), start, end)
    if account.is_empty:
        raise ReportFailed(
            f"there is no data of {account.address} in this period: no fills, no ledger updates, "
            "no funding"
        )
    return WalletResults(account)


def draw_funding(results: WalletResults) -> blocks.Block:
    """Return figures of funding; none if funding is not covered."""
    if results.funding is None:
        return blocks.join()
    coins, days = (funding.sums(results.funding, by=by) for by in ("coin", "day"))
    caption = "Funding paid and received by coin, in USD."
    first = blocks.figure(plots.funding_by_coin, coins, caption=caption)
    caption = "Funding by day, and its running sum, in USD."
    return blocks.join(first, blocks.figure(plots.funding_over_time, days, caption=caption))
