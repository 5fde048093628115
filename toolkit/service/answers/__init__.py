"""What answers each operation, by topic; `toolkit.fetch` has the same topics."""

from collections.abc import Callable
from typing import Final

from toolkit.service.answers import (
    accounts,
    auctions,
    fills,
    funding,
    market,
    orders,
    snapshots,
    staking,
)
from toolkit.service.asked import Answer, Asked
from toolkit.service.store import Store

__all__ = ["HANDLERS"]

HANDLERS: Final[dict[str, Callable[[Store, Asked], Answer]]] = {
    "spotPairDeployAuctionStatus": auctions.spot_pair_deploy_auction_status,
    "perpDeployAuctionStatus": auctions.perp_deploy_auction_status,
    "currentDepth": market.current_depth,
    "slippageHistory": market.slippage_history,
    "meta": market.meta,
    "metaAndAssetCtxs": market.meta_and_asset_ctxs,
    "perpDexLimits": market.perp_dex_limits,
    "accountValueSnapshotTimestamp": snapshots.account_value_snapshot_timestamp,
    "accountValueSnapshots": snapshots.account_value_snapshots,
    "perpTwapSnapshotTimestamp": snapshots.perp_twap_snapshot_timestamp,
    "perpTwapSnapshots": snapshots.perp_twap_snapshots,
    "userFills": fills.user_fills,
    "userFillsByTime": fills.user_fills_by_time,
    "builderApprovedFillsByTime": fills.builder_approved_fills_by_time,
    "builderApprovedFundingByTime": funding.builder_approved_funding_by_time,
    "builderOrdersByTime": orders.builder_orders_by_time,
    "historicalOrders": orders.historical_orders,
    "userNonFundingLedgerUpdates": accounts.user_non_funding_ledger_updates,
    "batchClearinghouseStates": accounts.batch_clearinghouse_states,
    "borrowLendUserState": accounts.borrow_lend_user_state,
    "delegations": staking.delegations,
    "validatorAprHistory": staking.validator_apr_history,
}
"""Operation -> its handler; one that is not here yet is answered with 501."""
