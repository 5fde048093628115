"""The handlers of all operations, by topic; `toolkit.fetch` has the same topics.

A handler takes the store and a checked request, and returns a response.
"""

from collections.abc import Callable
from typing import Final

from toolkit.service.answers import (
    accounts,
    auctions,
    fills,
    funding,
    market,
    orders,
    profiles,
    snapshots,
    staking,
)
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.store import Store

__all__ = ["HANDLERS"]

HANDLERS: Final[dict[str, Callable[[Store, CheckedRequest], Response]]] = {
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
    "spotMeta": market.spot_meta,
    "spotMetaAndAssetCtxs": market.spot_meta_and_asset_ctxs,
    "perpDexs": market.perp_dexs,
    "allMids": market.all_mids,
    "fundingHistory": market.funding_history,
    "candleSnapshot": market.candle_snapshot,
    "l2Book": market.l2_book,
    "outcomeMeta": market.outcome_meta,
    "exchangeStatus": market.exchange_status,
    "userTwapSliceFills": fills.user_twap_slice_fills,
    "userFunding": funding.user_funding,
    "openOrders": orders.open_orders,
    "frontendOpenOrders": orders.frontend_open_orders,
    "orderStatus": orders.order_status,
    "clearinghouseState": accounts.clearinghouse_state,
    "spotClearinghouseState": profiles.spot_clearinghouse_state,
    "userVaultEquities": profiles.user_vault_equities,
    "subAccounts": profiles.sub_accounts,
    "userRole": profiles.user_role,
    "userFees": profiles.user_fees,
    "userRateLimit": profiles.user_rate_limit,
    "portfolio": profiles.portfolio,
    "delegatorSummary": staking.delegator_summary,
    "delegatorHistory": staking.delegator_history,
    "delegatorRewards": staking.delegator_rewards,
    "extraAgents": profiles.extra_agents,
    "referral": profiles.referral,
    "spotDeployState": auctions.spot_deploy_state,
    "userAbstraction": profiles.user_abstraction,
    "userDexAbstraction": profiles.user_dex_abstraction,
    "userToMultiSigSigners": profiles.user_to_multi_sig_signers,
}
"""Type of an operation -> its handler. The response to an operation without a handler is 501."""
