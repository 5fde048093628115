# The public names, written once: `lazy_loader` imports them when they are used, type checkers read
# them here.
from . import (
    accounts as accounts,
    archive as archive,
    auctions as auctions,
    builders as builders,
    depth as depth,
    errors as errors,
    example as example,
    execution as execution,
    funding as funding,
    ledger as ledger,
    liquidations as liquidations,
    orders as orders,
    performance as performance,
    plots as plots,
    pnl as pnl,
    prepare as prepare,
    reports as reports,
    slippage as slippage,
    staking as staking,
    testing as testing,
    twaps as twaps,
    widgets as widgets,
)
from .client import Session as Session, connect as connect
from .descriptions.describe import Description as Description, describe as describe
from .errors import (
    AnswerDamaged as AnswerDamaged,
    AnswerInvalid as AnswerInvalid,
    ArchiveError as ArchiveError,
    BadRequest as BadRequest,
    BudgetSpent as BudgetSpent,
    HistoryWarning as HistoryWarning,
    Incomplete as Incomplete,
    InvalidKey as InvalidKey,
    MissingColumns as MissingColumns,
    MissingExtra as MissingExtra,
    NotConnected as NotConnected,
    NotPermitted as NotPermitted,
    NotReady as NotReady,
    RateLimited as RateLimited,
    RepeatedRows as RepeatedRows,
    ReportFailed as ReportFailed,
    ServiceDown as ServiceDown,
    ServiceError as ServiceError,
    ToolkitError as ToolkitError,
    Unreachable as Unreachable,
)
from .fetch.accounts import (
    AccountStates as AccountStates,
    BorrowLendState as BorrowLendState,
    PortfolioState as PortfolioState,
    Vault as Vault,
    batch_clearinghouse_states as batch_clearinghouse_states,
    borrow_lend_user_state as borrow_lend_user_state,
    portfolio_state as portfolio_state,
    user_borrow_lend_interest as user_borrow_lend_interest,
    user_non_funding_ledger_updates as user_non_funding_ledger_updates,
    vault_details as vault_details,
)
from .fetch.auctions import (
    perp_deploy_auction_status as perp_deploy_auction_status,
    spot_pair_deploy_auction_status as spot_pair_deploy_auction_status,
)
from .fetch.account import Account as Account, account as account
from .fetch.concat import concat as concat
from .fetch.fills import (
    builder_approved_fills_by_time as builder_approved_fills_by_time,
    builder_fills_by_time as builder_fills_by_time,
    liquidation_history_by_time as liquidation_history_by_time,
    user_fills as user_fills,
    user_fills_by_time as user_fills_by_time,
    user_twap_slice_fills as user_twap_slice_fills,
)
from .fetch.funding import (
    builder_approved_funding_by_time as builder_approved_funding_by_time,
    user_funding as user_funding,
)
from .fetch.many import many as many
from .fetch.market import (
    DexLimits as DexLimits,
    SpotMarkets as SpotMarkets,
    all_mids as all_mids,
    candles as candles,
    current_depth as current_depth,
    funding_history as funding_history,
    margin_tables as margin_tables,
    meta as meta,
    meta_and_asset_ctxs as meta_and_asset_ctxs,
    open_interest_history as open_interest_history,
    perp_dex_limits as perp_dex_limits,
    predicted_fundings as predicted_fundings,
    slippage_history as slippage_history,
    spot_meta as spot_meta,
)
from .fetch.markets import market_names as market_names
from .fetch.orders import (
    builder_orders_by_time as builder_orders_by_time,
    historical_orders as historical_orders,
)
from .fetch.pages import pages as pages
from .fetch.plan import Plan as Plan, plan as plan
from .fetch.poll import poll as poll
from .fetch.raw import info as info, raw as raw
from .fetch.snapshots import (
    account_value_snapshot_timestamp as account_value_snapshot_timestamp,
    account_value_snapshots as account_value_snapshots,
    perp_twap_snapshot_timestamp as perp_twap_snapshot_timestamp,
    perp_twap_snapshots as perp_twap_snapshots,
)
from .fetch.staking import (
    delegations as delegations,
    validator_apr_history as validator_apr_history,
)
from .fetch.trades import (
    user_completed_trades_by_time as user_completed_trades_by_time,
    user_pnl_summary as user_pnl_summary,
)
from .frames import Provenance as Provenance, frame as frame, provenance as provenance
from .local_service import local as local
from .partitions import apply as apply

__version__: str
