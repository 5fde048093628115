"""What a wallet report says, computed from its material."""

import warnings
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import funding, pnl, slippage
from toolkit.analysis.common import fees
from toolkit.errors import MissingColumns
from toolkit.reports.coverage import Coverage, coverage
from toolkit.reports.material import Material, is_perp

__all__ = ["PARTS", "Results"]

PARTS: Final = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding")
"""What net is the sum of."""
_STATED: Final = ("closed_pnl", "fee", "start_position")
_FEES: Final = ("trading_fee", "builder_fee", "rebate", "other_fees")


@dataclass(frozen=True)
class Results:
    """The results of a wallet report, each computed once.

    Parameters
    ----------
    material : Material
        What was fetched.
    """

    material: Material

    def attribution(self, by: str | None = None) -> pd.DataFrame:
        """Attribute PnL; the ledger only to what has one."""
        made = self.material
        ledger = None if by == "coin" else made.ledger
        with warnings.catch_warnings():
            # The report itself says what is not known, and of how many fills (`unstated`).
            warnings.simplefilter("ignore", fees.MissingAmounts)
            result: pd.DataFrame = pnl.attribution(
                made.fills,
                self.funding,
                ledger,
                by=by,
                account=made.user,
                start_time=made.start_ms,
                end_time=made.end_ms,
            )
        return result

    @cached_property
    def unstated(self) -> dict[str, int]:
        """How many fills lack what each fill should state; without what none of them lacks."""
        fills = self.material.fills
        counts = {name: int(fills[name].isna().sum()) for name in _STATED}
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def without_amounts(self) -> int:
        """How many fills lack their closed PnL or their fee, so that net is not known."""
        fills = self.material.fills
        return int((fills["closed_pnl"].isna() | fills["fee"].isna()).sum())

    @cached_property
    def without_position(self) -> int:
        """How many fills of perps lack the position they start from."""
        fills = self.material.fills
        return int((fills["start_position"].isna() & is_perp(fills["coin"])).sum())

    def drawn(self, by: str | None = None) -> pd.DataFrame:
        """Give the attribution for a figure; empty without fills, and where net is not known."""
        rows = self.attribution(by=by)
        return rows if self.whole["fills"] and not self.without_amounts else rows.iloc[:0]

    def without_unknown(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Give rows of an attribution with sums missing where fills lack what they sum."""
        lacks = rows["missing_amounts"] > 0
        if not lacks.any():
            return rows
        names = ["net"]
        names += ["closed_pnl"] if "closed_pnl" in self.unstated else []
        names += [one for one in _FEES if one in rows] if "fee" in self.unstated else []
        return rows.assign(**{one: rows[one].astype("object").mask(lacks, None) for one in names})

    @cached_property
    def funding(self) -> pd.DataFrame | None:
        """The funding rows; None where there are none: that does not mean there was no position."""
        if self.without_position:
            paid = self.material.funding
            return None if paid is None or paid.empty else paid
        found = self.coverage
        if found is None or not (found.covered or found.beyond):
            return None
        return self.material.funding

    @cached_property
    def whole(self) -> pd.Series:
        """The one row of the whole period."""
        return self.attribution().iloc[0]

    @cached_property
    def at_par(self) -> list[str]:
        """The tokens other than USDC that fills are in, and that count at par."""
        return fees.tokens_at_par(self.material.fills)

    @cached_property
    def coverage(self) -> Coverage | None:
        """How much of its funding is covered; None where that cannot be known.

        That is so where there are no funding rows to have, or fills lack their position.
        """
        made = self.material
        if made.funding is None or self.without_position:
            return None
        return coverage(made.fills, made.funding, made.end_ms)

    @cached_property
    def residual(self) -> Decimal:
        """Net less the sum of its parts; 0, unless this program is wrong."""
        parts = [self.whole[name] for name in PARTS]
        return Decimal(self.whole["net"]) - sum((p for p in parts if not pd.isna(p)), Decimal(0))

    @cached_property
    def reconciled(self) -> pd.Series | None:
        """The account's value explained by its tables; None where its beginning is not in them."""
        made = self.material
        if made.states is None or made.start_ms > 0:
            return None
        rows = pnl.reconcile(
            None, made.states, made.fills, made.funding, made.ledger, account=made.user
        )
        row: pd.Series = rows.iloc[0]
        return row

    @cached_property
    def audit(self) -> pd.DataFrame | None:
        """The fills with closed PnL recomputed by the exchange's rule.

        None where fills lack what that takes.
        """
        try:
            audited: pd.DataFrame = pnl.audit(self.material.fills, self.material.perps)
        except MissingColumns:
            return None
        return audited

    @cached_property
    def fees(self) -> Decimal:
        """All fees with rebates, negative when paid; without those in the cost of spot tokens."""
        names = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
        return sum((Decimal(self.whole[name]) for name in names), Decimal(0))

    @cached_property
    def fee_bps(self) -> float | None:
        """Fees in basis points of volume, negative when paid; None without volume.

        All fees: also those that spot buys paid in the bought token.
        """
        volume = float(self.whole["volume"])
        paid = self.fees + Decimal(self.whole["fees_in_cost"])
        return None if volume == 0 else float(paid) / volume * 1e4

    def funding_sums(self, by: str) -> pd.DataFrame:
        """Sum funding; empty where it is not covered."""
        if self.funding is None:
            return pd.DataFrame()
        sums: pd.DataFrame = funding.sums(self.funding, by=by)
        return sums

    @cached_property
    def slippage(self) -> pd.DataFrame:
        """What a size costs, for the coins traded most; empty where there are no samples."""
        samples = self.material.slippage
        return slippage.curve(samples) if len(samples) else pd.DataFrame()

    def largest_fills(self, most: int = 10) -> pd.DataFrame:
        """Give the fills with the largest notional, and a column `notional` (float64, USD)."""
        fills = self.material.fills
        notional: Any = fills["px"].astype("float64") * fills["sz"].astype("float64")
        fills = fills.assign(notional=notional)
        return fills.sort_values(["notional", "time"], ascending=[False, True], kind="stable").head(
            most
        )
