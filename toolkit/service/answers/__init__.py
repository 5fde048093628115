"""What answers each operation, by topic; `toolkit.fetch` has the same topics."""

from collections.abc import Callable
from typing import Final

from toolkit.service.answers import (
    accounts,
    fills,
    funding,
    market,
)
from toolkit.service.asked import Answer, Asked
from toolkit.service.store import Store

__all__ = ["HANDLERS"]

HANDLERS: Final[dict[str, Callable[[Store, Asked], Answer]]] = {
    "slippageHistory": market.slippage_history,
    "meta": market.meta,
    "userFills": fills.user_fills,
    "userFillsByTime": fills.user_fills_by_time,
    "builderApprovedFillsByTime": fills.builder_approved_fills_by_time,
    "builderApprovedFundingByTime": funding.builder_approved_funding_by_time,
    "userNonFundingLedgerUpdates": accounts.user_non_funding_ledger_updates,
}
"""Operation -> its handler; one that is not here yet is answered with 501."""
