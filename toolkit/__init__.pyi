# The public names, written once: `lazy_loader` imports them when they are used, type checkers read
# them here.
from . import (
    accounts as accounts,
)
from . import (
    archive as archive,
)
from . import (
    auctions as auctions,
)
from . import (
    builders as builders,
)
from . import (
    depth as depth,
)
from . import (
    errors as errors,
)
from . import (
    example as example,
)
from . import (
    execution as execution,
)
from . import (
    funding as funding,
)
from . import (
    ledger as ledger,
)
from . import (
    liquidations as liquidations,
)
from . import (
    orders as orders,
)
from . import (
    plots as plots,
)
from . import (
    pnl as pnl,
)
from . import (
    reports as reports,
)
from . import (
    slippage as slippage,
)
from . import (
    staking as staking,
)
from . import (
    twaps as twaps,
)
from . import (
    widgets as widgets,
)
from .client import (
    Session as Session,
)
from .client import (
    connect as connect,
)
from .errors import (
    AnswerDamaged as AnswerDamaged,
)
from .errors import (
    AnswerInvalid as AnswerInvalid,
)
from .errors import (
    ArchiveError as ArchiveError,
)
from .errors import (
    BadRequest as BadRequest,
)
from .errors import (
    BudgetSpent as BudgetSpent,
)
from .errors import (
    HistoryWarning as HistoryWarning,
)
from .errors import (
    Incomplete as Incomplete,
)
from .errors import (
    InvalidKey as InvalidKey,
)
from .errors import (
    MissingColumns as MissingColumns,
)
from .errors import (
    NotConnected as NotConnected,
)
from .errors import (
    NotPermitted as NotPermitted,
)
from .errors import (
    NotReady as NotReady,
)
from .errors import (
    RateLimited as RateLimited,
)
from .errors import (
    RepeatedRows as RepeatedRows,
)
from .errors import (
    ReportFailed as ReportFailed,
)
from .errors import (
    ServiceDown as ServiceDown,
)
from .errors import (
    ServiceError as ServiceError,
)
from .errors import (
    ToolkitError as ToolkitError,
)
from .errors import (
    Unreachable as Unreachable,
)
from .fetch import (
    AccountStates as AccountStates,
)
from .fetch import (
    BorrowLendState as BorrowLendState,
)
from .fetch import (
    DexLimits as DexLimits,
)
from .fetch import (
    account_value_snapshot_timestamp as account_value_snapshot_timestamp,
)
from .fetch import (
    account_value_snapshots as account_value_snapshots,
)
from .fetch import (
    batch_clearinghouse_states as batch_clearinghouse_states,
)
from .fetch import (
    borrow_lend_user_state as borrow_lend_user_state,
)
from .fetch import (
    builder_approved_fills_by_time as builder_approved_fills_by_time,
)
from .fetch import (
    builder_approved_funding_by_time as builder_approved_funding_by_time,
)
from .fetch import (
    builder_orders_by_time as builder_orders_by_time,
)
from .fetch import (
    current_depth as current_depth,
)
from .fetch import (
    delegations as delegations,
)
from .fetch import (
    historical_orders as historical_orders,
)
from .fetch import (
    margin_tables as margin_tables,
)
from .fetch import (
    meta as meta,
)
from .fetch import (
    meta_and_asset_ctxs as meta_and_asset_ctxs,
)
from .fetch import (
    perp_deploy_auction_status as perp_deploy_auction_status,
)
from .fetch import (
    perp_dex_limits as perp_dex_limits,
)
from .fetch import (
    perp_twap_snapshot_timestamp as perp_twap_snapshot_timestamp,
)
from .fetch import (
    perp_twap_snapshots as perp_twap_snapshots,
)
from .fetch import (
    slippage_history as slippage_history,
)
from .fetch import (
    spot_pair_deploy_auction_status as spot_pair_deploy_auction_status,
)
from .fetch import (
    user_fills as user_fills,
)
from .fetch import (
    user_fills_by_time as user_fills_by_time,
)
from .fetch import (
    user_non_funding_ledger_updates as user_non_funding_ledger_updates,
)
from .fetch import (
    validator_apr_history as validator_apr_history,
)
from .fetch.concat import (
    concat as concat,
)
from .fetch.describe import (
    describe as describe,
)
from .fetch.many import (
    many as many,
)
from .fetch.pages import (
    pages as pages,
)
from .fetch.plan import (
    plan as plan,
)
from .fetch.poll import (
    poll as poll,
)
from .fetch.raw import (
    info as info,
)
from .fetch.raw import (
    raw as raw,
)
from .frames import (
    frame as frame,
)
from .frames import (
    provenance as provenance,
)
from .local_service import (
    local as local,
)

__version__: str

__all__ = [
    "AccountStates",
    "AnswerDamaged",
    "AnswerInvalid",
    "ArchiveError",
    "BadRequest",
    "BorrowLendState",
    "BudgetSpent",
    "DexLimits",
    "HistoryWarning",
    "Incomplete",
    "InvalidKey",
    "MissingColumns",
    "NotConnected",
    "NotPermitted",
    "NotReady",
    "RateLimited",
    "RepeatedRows",
    "ReportFailed",
    "ServiceDown",
    "ServiceError",
    "Session",
    "ToolkitError",
    "Unreachable",
    "account_value_snapshot_timestamp",
    "account_value_snapshots",
    "accounts",
    "archive",
    "auctions",
    "batch_clearinghouse_states",
    "borrow_lend_user_state",
    "builder_approved_fills_by_time",
    "builder_approved_funding_by_time",
    "builder_orders_by_time",
    "builders",
    "concat",
    "connect",
    "current_depth",
    "delegations",
    "depth",
    "describe",
    "errors",
    "example",
    "execution",
    "frame",
    "funding",
    "historical_orders",
    "info",
    "ledger",
    "liquidations",
    "local",
    "many",
    "margin_tables",
    "meta",
    "meta_and_asset_ctxs",
    "orders",
    "pages",
    "perp_deploy_auction_status",
    "perp_dex_limits",
    "perp_twap_snapshot_timestamp",
    "perp_twap_snapshots",
    "plan",
    "plots",
    "pnl",
    "poll",
    "provenance",
    "raw",
    "reports",
    "slippage",
    "slippage_history",
    "spot_pair_deploy_auction_status",
    "staking",
    "twaps",
    "user_fills",
    "user_fills_by_time",
    "user_non_funding_ledger_updates",
    "validator_apr_history",
    "widgets",
]
