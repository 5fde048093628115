"""The records of the wire, by topic; one `msgspec.Struct` each."""

from toolkit.contract.records.accounts import (
    AccountRow,
    AssetPosition,
    BatchStates,
    BatchStatesByDex,
    BorrowLend,
    BorrowLendAccount,
    ClearinghouseState,
    FailedRow,
    LendPosition,
    Leverage,
    MarginSummary,
    Position,
    PositionRow,
    TokenRow,
    TokenState,
)
from toolkit.contract.records.auctions import AuctionStatus
from toolkit.contract.records.fills import Fill
from toolkit.contract.records.funding import FundingDelta, FundingRow
from toolkit.contract.records.ledger import (
    DELTA_FIELDS,
    LedgerDelta,
    LedgerUpdate,
    LiquidatedPosition,
)
from toolkit.contract.records.market import (
    AssetContext,
    CoinCapRow,
    ContextRow,
    Depth,
    DepthLevel,
    DepthRow,
    DexCaps,
    DexLimits,
    MarketDepth,
    Meta,
    PerpAsset,
    SlippageSample,
)
from toolkit.contract.records.orders import Order, OrderStatus
from toolkit.contract.records.record import Record
from toolkit.contract.records.snapshots import (
    AccountValueRow,
    BranchMargin,
    SnapshotMetadata,
    TwapRow,
)
from toolkit.contract.records.staking import Delegation, ValidatorWeek

__all__ = [
    "DELTA_FIELDS",
    "AccountRow",
    "AccountValueRow",
    "AssetContext",
    "AssetPosition",
    "AuctionStatus",
    "BatchStates",
    "BatchStatesByDex",
    "BorrowLend",
    "BorrowLendAccount",
    "BranchMargin",
    "ClearinghouseState",
    "CoinCapRow",
    "ContextRow",
    "Delegation",
    "Depth",
    "DepthLevel",
    "DepthRow",
    "DexCaps",
    "DexLimits",
    "FailedRow",
    "Fill",
    "FundingDelta",
    "FundingRow",
    "LedgerDelta",
    "LedgerUpdate",
    "LendPosition",
    "Leverage",
    "LiquidatedPosition",
    "MarginSummary",
    "MarketDepth",
    "Meta",
    "Order",
    "OrderStatus",
    "PerpAsset",
    "Position",
    "PositionRow",
    "Record",
    "SlippageSample",
    "SnapshotMetadata",
    "TokenRow",
    "TokenState",
    "TwapRow",
    "ValidatorWeek",
]
