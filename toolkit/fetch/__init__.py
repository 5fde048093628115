"""The fetch functions by topic: one per operation, and one per further frame of an answer."""

from toolkit.fetch.accounts import (
    AccountStates,
    BorrowLendState,
    batch_clearinghouse_states,
    borrow_lend_user_state,
    user_non_funding_ledger_updates,
)
from toolkit.fetch.auctions import perp_deploy_auction_status, spot_pair_deploy_auction_status
from toolkit.fetch.fills import builder_approved_fills_by_time, user_fills, user_fills_by_time
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.fetch.market import (
    DexLimits,
    current_depth,
    margin_tables,
    meta,
    meta_and_asset_ctxs,
    perp_dex_limits,
    slippage_history,
)
from toolkit.fetch.orders import builder_orders_by_time, historical_orders
from toolkit.fetch.snapshots import (
    account_value_snapshot_timestamp,
    account_value_snapshots,
    perp_twap_snapshot_timestamp,
    perp_twap_snapshots,
)
from toolkit.fetch.staking import delegations, validator_apr_history
from toolkit.public_path import set_public_path

__all__ = [
    "AccountStates",
    "BorrowLendState",
    "DexLimits",
    "account_value_snapshot_timestamp",
    "account_value_snapshots",
    "batch_clearinghouse_states",
    "borrow_lend_user_state",
    "builder_approved_fills_by_time",
    "builder_approved_funding_by_time",
    "builder_orders_by_time",
    "current_depth",
    "delegations",
    "historical_orders",
    "margin_tables",
    "meta",
    "meta_and_asset_ctxs",
    "perp_deploy_auction_status",
    "perp_dex_limits",
    "perp_twap_snapshot_timestamp",
    "perp_twap_snapshots",
    "slippage_history",
    "spot_pair_deploy_auction_status",
    "user_fills",
    "user_fills_by_time",
    "user_non_funding_ledger_updates",
    "validator_apr_history",
]

set_public_path(globals(), "toolkit")
