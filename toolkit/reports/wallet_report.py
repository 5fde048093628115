"""The wallet report: what one account earned, paid and traded.

The notebook ``notebooks/wallet.py`` has the prose, and calls these functions.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import funding, plots, pnl, slippage
from toolkit.client import Session
from toolkit.errors import MissingAmounts, MissingColumns, ReportFailed
from toolkit.fetch.account import Account
from toolkit.reports import blocks, report_frames
from toolkit.reports.example import example_account
from toolkit.reports.funding_coverage import FundingCoverage, compare_funding
from toolkit.times import Time

PARTS: Final = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding")
"""The parts whose sum is net."""
_EXPECTED: Final = ("closed_pnl", "fee", "start_position")
_FEES: Final = ("trading_fee", "builder_fee", "deployer_fee", "rebate", "other_fees")


@dataclass(frozen=True)
class WalletResults:
    """The results of a wallet report; each is computed once.

    - ``account``: the account with its frames
    """

    account: Account

    def attribution(self, by: str | None = None) -> pd.DataFrame:
        """Return the attribution of PnL. By coin it lacks the ledger, whose rows have no coin."""
        if by not in self._attributions:
            account = self.account
            # Where fills may be missing, funding counts between the first and the last of them.
            is_whole = "may be missing" not in str(account.fills.attrs["toolkit"].get("history"))
            with warnings.catch_warnings():
                # The report states the missing amounts itself (`missing_counts`).
                warnings.simplefilter("ignore", MissingAmounts)
                self._attributions[by] = pnl.attribution(
                    account.prepared,
                    self.funding,
                    None if by == "coin" else account.ledger,
                    by=by,
                    start_time=account.start_ms if is_whole else None,
                    end_time=account.end_ms if is_whole else None,
                )
        return self._attributions[by].copy(deep=False)

    @cached_property
    def _attributions(self) -> dict[str | None, pd.DataFrame]:
        return {}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The numbers that sentences state, by the name of their place."""
        total, counts, coverage = self.total, self.missing_counts, self.coverage
        covered = {} if coverage is None else coverage._asdict()
        if covered.get("held"):
            covered["covered_share"] = covered["covered"] / covered["held"]
        return covered | {
            **total,
            "traded": total["fills"],
            "fills": len(self.account.fills),
            "updates": len(self.account.ledger),
            "unclosed": counts.get("closed_pnl", 0),
            "unpaid": counts.get("fee", 0),
            "unplaced": counts.get("start_position", 0),
            "unplaced_perps": self.fills_without_position,
            "unvalued": self.fills_without_amounts,
            "fees": self.fees,
            "rate": self.fee_bps,
            "unknown": total["unpriced_fees"] + total["unknown_flows"],
        }

    @cached_property
    def missing_counts(self) -> dict[str, int]:
        """Column -> number of fills without it, for columns that every fill should have."""
        fills = self.account.fills
        counts = {name: int(fills[name].isna().sum()) for name in _EXPECTED}
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def fills_without_amounts(self) -> int:
        """Number of fills without closed PnL or fee; if there are any, net is not known."""
        fills = self.account.fills
        return int((fills["closed_pnl"].isna() | fills["fee"].isna()).sum())

    @cached_property
    def fills_without_position(self) -> int:
        """Number of perp fills without the position before them."""
        fills = self.account.fills
        return int((fills["start_position"].isna() & report_frames.is_perp(fills["coin"])).sum())

    def plot_rows(self, by: str | None = None) -> pd.DataFrame:
        """Return the attribution for a figure; no rows without fills, or if amounts are missing."""
        rows = self.attribution(by=by)
        return rows if self.total["fills"] and not self.fills_without_amounts else rows.iloc[:0]

    def mask_unknown(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows of an attribution; sums of missing amounts are missing, too."""
        is_partial = rows["missing_amounts"] > 0
        if not is_partial.any():
            return rows
        names = ["net"]
        names += ["closed_pnl"] if "closed_pnl" in self.missing_counts else []
        names += [name for name in _FEES if name in rows] if "fee" in self.missing_counts else []
        return rows.assign(
            **{name: rows[name].astype("object").mask(is_partial, None) for name in names}
        )

    @cached_property
    def funding(self) -> pd.DataFrame | None:
        """The funding rows; None if there are none, although there may have been positions."""
        paid, found = self.account.funding, self.coverage
        if paid is not None and paid.empty and (found is None or found.held):
            return None
        return paid

    @cached_property
    def total(self) -> pd.Series:
        """The attribution of the whole period."""
        return self.attribution().iloc[0]

    @cached_property
    def coverage(self) -> FundingCoverage | None:
        """The coverage of funding; None if it is not known.

        It is not known without funding rows, or if fills have no position before them.
        """
        account = self.account
        if account.funding is None or self.fills_without_position:
            return None
        return compare_funding(account.fills, account.funding, account.end_ms)

    @cached_property
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
    def fees(self) -> float:
        """All fees with rebates, negative if paid; without fees in the cost of spot tokens."""
        return float(sum(self.total[name] for name in _FEES[:-1]))

    @cached_property
    def fee_bps(self) -> float | None:
        """Fees in basis points of volume, negative if paid; None without volume.

        They include the fees that spot buys paid in the bought token.
        """
        volume = float(self.total["volume"])
        paid = self.fees + float(self.total["fees_in_cost"])
        return None if volume == 0 else float(paid) / volume * 1e4

    @cached_property
    def maker_share(self) -> float | None:
        """Share of the volume that rested in the book; None without volume, or if not known."""
        fills = self.account.fills
        usd = fills["px"].astype("float64") * fills["sz"].astype("float64")
        if fills["crossed"].isna().any() or not usd.sum():
            return None
        return float(usd[~fills["crossed"].astype("bool")].sum() / usd.sum())

    @cached_property
    def slippage(self) -> pd.DataFrame:
        """Slippage by size of the coins with the largest volume; empty without samples."""
        samples = self.account.samples
        return pd.DataFrame() if samples is None or samples.empty else slippage.curve(samples)


def fetch_results(
    session: Session,
    user: str | None,
    start: Time = 0,
    end: Time | None = None,
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


def make_title(results: WalletResults) -> blocks.Block:
    """Return the title of the report."""
    account = results.account
    period, kind = (account.start_ms, account.end_ms), "Wallet report"
    times = (account.fills["time"], account.ledger["time"])
    return report_frames.make_title(kind, account.address, account.session, period, times)


def draw_funding(results: WalletResults) -> blocks.Block:
    """Return figures of funding; none if funding is not covered."""
    if results.funding is None:
        return blocks.join()
    coins, days = (funding.sums(results.funding, by=by) for by in ("coin", "day"))
    caption = "Funding by day, and its running sum, in USD."
    return blocks.join(
        blocks.figure(
            plots.funding_by_coin, coins, caption="Funding paid and received by coin, in USD."
        ),
        blocks.figure(plots.funding_over_time, days, caption=caption),
    )


def source_frames(results: WalletResults) -> dict[str, pd.DataFrame | None]:
    """Return the fetched frames by name, for the provenance."""
    account = results.account
    return {
        "fills": account.fills,
        "latest fills": account.latest,
        "funding": account.funding,
        "ledger": account.ledger,
        "slippage": account.samples,
        "positions": None if account.states is None else account.states.positions,
    }
