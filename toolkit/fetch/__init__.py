"""The fetch functions by topic: one per operation, and one per further frame of an answer.

Each name stands here once: ``X as X`` exports it.
"""

from toolkit.fetch.accounts import (
    AccountStates as AccountStates,
    BorrowLendState as BorrowLendState,
    batch_clearinghouse_states as batch_clearinghouse_states,
    borrow_lend_user_state as borrow_lend_user_state,
    user_non_funding_ledger_updates as user_non_funding_ledger_updates,
)
from toolkit.fetch.auctions import (
    perp_deploy_auction_status as perp_deploy_auction_status,
    spot_pair_deploy_auction_status as spot_pair_deploy_auction_status,
)
from toolkit.fetch.fills import (
    builder_approved_fills_by_time as builder_approved_fills_by_time,
    user_fills as user_fills,
    user_fills_by_time as user_fills_by_time,
)
from toolkit.fetch.funding import (
    builder_approved_funding_by_time as builder_approved_funding_by_time,
    user_funding as user_funding,
)
from toolkit.fetch.market import (
    DexLimits as DexLimits,
    current_depth as current_depth,
    margin_tables as margin_tables,
    meta as meta,
    meta_and_asset_ctxs as meta_and_asset_ctxs,
    perp_dex_limits as perp_dex_limits,
    slippage_history as slippage_history,
)
from toolkit.fetch.orders import (
    builder_orders_by_time as builder_orders_by_time,
    historical_orders as historical_orders,
)
from toolkit.fetch.snapshots import (
    account_value_snapshot_timestamp as account_value_snapshot_timestamp,
    account_value_snapshots as account_value_snapshots,
    perp_twap_snapshot_timestamp as perp_twap_snapshot_timestamp,
    perp_twap_snapshots as perp_twap_snapshots,
)
from toolkit.fetch.staking import (
    delegations as delegations,
    validator_apr_history as validator_apr_history,
)
