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
from toolkit.prepare import Fills
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import BlockList, TitleBlock
from toolkit.reports.example import example_account
from toolkit.reports.figures import Draw
from toolkit.reports.funding_coverage import FundingCoverage, compare_funding
from toolkit.reports.report_frames import is_perp
from toolkit.reports.wallet_frames import WalletFrames, fetch_wallet
from toolkit.times import Time

PARTS: Final = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding")
"""The parts whose sum is net."""
_EXPECTED: Final = ("closed_pnl", "fee", "start_position")
_FEES: Final = ("trading_fee", "builder_fee", "deployer_fee", "rebate", "other_fees")
_BY_COIN: Final = "Funding paid and received by coin, in USD."
_BY_DAY: Final = "Funding by day, and its running sum, in USD."


@dataclass(frozen=True)
class WalletResults:
    """The results of a wallet report; each is computed once.

    - ``frames``: the fetched frames
    """

    frames: WalletFrames

    def attribution(self, by: str | None = None) -> pd.DataFrame:
        """Return the attribution of PnL. By coin it lacks the ledger, whose rows have no coin."""
        if by not in self._attributions:
            self._attributions[by] = self._compute_attribution(by)
        return self._attributions[by].copy(deep=False)

    @cached_property
    def _attributions(self) -> dict[str | None, pd.DataFrame]:
        return {}

    def _compute_attribution(self, by: str | None) -> pd.DataFrame:
        frames = self.frames
        ledger = None if by == "coin" else frames.ledger
        # Where fills may be missing, funding counts between the first and the last of them.
        is_whole = "may be missing" not in str(frames.fills.attrs["toolkit"].get("history"))
        with warnings.catch_warnings():
            # The report states the missing amounts itself (`missing_counts`).
            warnings.simplefilter("ignore", MissingAmounts)
            result: pd.DataFrame = pnl.attribution(
                frames.fills,
                self.funding,
                ledger,
                by=by,
                account=frames.user,
                start_time=frames.start_ms if is_whole else None,
                end_time=frames.end_ms if is_whole else None,
            )
        return result

    @cached_property
    def missing_counts(self) -> dict[str, int]:
        """Column -> number of fills without it, for columns that every fill should have."""
        fills = self.frames.fills
        counts = {name: int(fills[name].isna().sum()) for name in _EXPECTED}
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def fills_without_amounts(self) -> int:
        """Number of fills without closed PnL or fee; if there are any, net is not known."""
        fills = self.frames.fills
        return int((fills["closed_pnl"].isna() | fills["fee"].isna()).sum())

    @cached_property
    def fills_without_position(self) -> int:
        """Number of perp fills without the position before them."""
        fills = self.frames.fills
        return int((fills["start_position"].isna() & is_perp(fills["coin"])).sum())

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
        if self.fills_without_position:
            paid = self.frames.funding
            return None if paid is None or paid.empty else paid
        found = self.coverage
        if found is None or not (found.covered or found.beyond):
            return None
        return self.frames.funding

    @cached_property
    def total(self) -> pd.Series:
        """The attribution of the whole period."""
        return self.attribution().iloc[0]

    @cached_property
    def par_tokens(self) -> list[str]:
        """The tokens other than USDC in fills, which count at par."""
        return Fills(self.frames.fills).tokens_at_par()

    @cached_property
    def coverage(self) -> FundingCoverage | None:
        """The coverage of funding; None if it is not known.

        It is not known without funding rows, or if fills have no position before them.
        """
        frames = self.frames
        if frames.funding is None or self.fills_without_position:
            return None
        return compare_funding(frames.fills, frames.funding, frames.end_ms)

    @cached_property
    def residual(self) -> float:
        """Net less the sum of its parts, to 1e-6 USD; 0 unless this program has an error."""
        parts = [self.total[name] for name in PARTS]
        return round(float(self.total["net"] - sum(p for p in parts if not pd.isna(p))), 6)

    @cached_property
    def reconciliation(self) -> pd.Series | None:
        """The account value explained by the frames; None if they do not begin with the account."""
        frames = self.frames
        if frames.states is None or frames.start_ms > 0:
            return None
        rows = pnl.reconcile(
            None, frames.states, frames.fills, frames.funding, frames.ledger, account=frames.user
        )
        row: pd.Series = rows.iloc[0].copy()
        row["residual"] = round(row["residual"], 6)
        return row

    @cached_property
    def audit(self) -> pd.DataFrame | None:
        """The fills with recomputed closed PnL; None if columns for it are missing."""
        try:
            audit: pd.DataFrame = pnl.audit(self.frames.fills, self.frames.perps)
        except MissingColumns:
            return None
        return audit

    @cached_property
    def fees(self) -> float:
        """All fees with rebates, negative if paid; without fees in the cost of spot tokens."""
        names = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
        return float(sum(self.total[name] for name in names))

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
        fills = self.frames.fills
        usd = fills["px"].astype("float64") * fills["sz"].astype("float64")
        if fills["crossed"].isna().any() or not usd.sum():
            return None
        return float(usd[~fills["crossed"].astype("bool")].sum() / usd.sum())

    def funding_sums(self, by: str) -> pd.DataFrame:
        """Return sums of funding; empty if funding is not covered."""
        if self.funding is None:
            return pd.DataFrame()
        sums: pd.DataFrame = funding.sums(self.funding, by=by)
        return sums

    @cached_property
    def slippage(self) -> pd.DataFrame:
        """Slippage by size of the coins with the largest volume; empty without samples."""
        samples = self.frames.slippage
        return slippage.curve(samples) if len(samples) else pd.DataFrame()

    def largest_fills(self, count: int = 10) -> pd.DataFrame:
        """Return the fills with the largest notional, with a column `notional` (float64, USD)."""
        fills = self.frames.fills
        notional: Any = fills["px"].astype("float64") * fills["sz"].astype("float64")
        fills = fills.assign(notional=notional)
        return fills.sort_values(["notional", "time"], ascending=[False, True], kind="stable").head(
            count
        )


def fetch_results(
    session: Session,
    user: str | None,
    start: Time = 0,
    end: Time | None = None,
    builders: list[str] | None = None,
) -> WalletResults:
    """Fetch the frames of an account, and return the results of its report.

    Raise BadRequest if the address is malformed. Raise ReportFailed if there are no rows of the
    account.
    """
    account = example_account(session) if user is None else user
    frames = fetch_wallet(session, account, start, end, builders)
    if frames.is_empty:
        raise ReportFailed(
            f"there is no data of {account} in this period: no fills, no ledger updates, no funding"
        )
    return WalletResults(frames)


def make_title(results: WalletResults) -> TitleBlock:
    """Return the title of the report."""
    frames = results.frames
    times = (frames.fills["time"], frames.ledger["time"])
    period = tables.period_text(frames.start_ms, frames.end_ms, *times)
    return blocks.title(
        "Wallet report",
        frames.user,
        f"{period} · {frames.source}",
        simulated=frames.simulated,
    )


def draw_rows(draw: Draw, rows: pd.DataFrame, caption: str) -> BlockList:
    """Return a figure with its caption; none without rows, because its axes would be empty."""
    return BlockList([] if rows.empty else [blocks.figure(draw, rows, caption=caption)])


def draw_funding(results: WalletResults) -> BlockList:
    """Return figures of funding; none if funding is not covered."""
    if results.funding is None:
        return BlockList([])
    coins, days = results.funding_sums("coin"), results.funding_sums("day")
    return BlockList(
        [
            blocks.figure(plots.funding_by_coin, coins, caption=_BY_COIN),
            blocks.figure(plots.funding_over_time, days, caption=_BY_DAY),
        ]
    )


def source_frames(results: WalletResults) -> dict[str, pd.DataFrame | None]:
    """Return the fetched frames by name, for the provenance."""
    frames = results.frames
    return {
        "fills": frames.fills,
        "latest fills": frames.latest,
        "funding": frames.funding,
        "ledger": frames.ledger,
        "slippage": frames.slippage if len(frames.slippage) else None,
        "positions": None if frames.states is None else frames.states.positions,
    }
