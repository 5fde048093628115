"""The 22 operations, one row each. Specification, "Endpoints" and "Limits".

What a row cannot say stands in plain functions beside it: nested answers in `shapes`, the
words of special errors in `requests`, binary snapshots in `snapshots`.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from toolkit.contract import records as r

__all__ = [
    "OPERATIONS",
    "VIEWS",
    "CallLimit",
    "Operation",
    "Parameter",
    "Scale",
    "Table",
    "get_operation",
    "unknown_operation",
]

ParameterKind = Literal[
    "address",
    "addresses",
    "text",
    "texts",
    "whole",
    "time",
    "usd",
    "flag",
    "cursor",
    "venue",
    "interval",
    "order",
]
Paging = Literal["none", "cursor", "open cursor", "forward", "backward"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a request.

    Attributes
    ----------
    name : str
        Its name on the wire.
    python : str
        Its name in the fetch function.
    kind : str
        What is legal; `toolkit.contract.requests` checks it.
    meaning : str
        One line for the documents.
    required : bool
        Whether the service refuses a request without it.
    unless : str
        Wire name of the parameter that may stand instead of a required one.
    default : object
        What the service takes when it is absent.
    least, most : int, optional
        Range of a whole number; of lists, the number of entries.
    within : str
        Name of the object in the request that holds it; empty: the request itself.
    native : str
        How it names the native dex: a form of `toolkit.contract.dexes.native_form`, or nothing.
    """

    name: str
    python: str
    kind: ParameterKind
    meaning: str
    required: bool = False
    unless: str = ""
    default: Any = None
    least: int | None = None
    most: int | None = None
    within: str = ""
    native: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One frame of an answer: its rows' record, and the fields this operation leaves out."""

    record: type[r.Record]
    name: str = ""
    omits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """How the points of a request grow with what it asks for.

    Attributes
    ----------
    each : int
        Points for each entry of a list; `Operation.points` is the most.
    entries : str
        Wire name of that list.
    dex : str
        Wire name of the parameter that may be ALL_DEXES: then times the number of dexes.
    """

    each: int
    entries: str
    dex: str


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How often a key may ask one operation, besides its points.

    Attributes
    ----------
    calls : int
        So many requests.
    seconds : int
        In any stretch of so many seconds.
    """

    calls: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: what is asked, what comes back, how it is paged, what it costs.

    Attributes
    ----------
    type : str
        The value of ``type`` in the request.
    topic : str
        The module of fetch functions and of the service's answers.
    summary : str
        One line for the documents.
    answer : object
        The Python type of the whole answer.
    tables : tuple of Table
        The frames that the answer becomes.
    parameters : tuple of Parameter
        The request's fields besides ``type``.
    key : tuple of str
        Paths of the fields that order the rows and make up a cursor.
    paging : str
        ``cursor`` (with a page size), ``open cursor`` (page size not known), ``forward`` and
        ``backward`` (by time, no cursor), or ``none``.
    latest : bool
        Whether it gives the latest rows only, by definition.
    points : int
        Cost of one request; the most that it costs where there is a `scale`.
    scale : Scale, optional
        How the cost depends on the request.
    limit : CallLimit, optional
        A limit of its own.
    add_on : bool
        Whether it must be bought separately.
    own : bool
        Whether it exists in this service only, not in the mirrored API.
    binary : bool
        Whether the answer is compressed MessagePack instead of JSON.
    since : str
        First day that the service has data of.
    view : str
        The name of another frame that is made of the same answer; empty for the usual one.
    """

    type: str
    topic: str
    summary: str
    answer: Any
    tables: tuple[Table, ...]
    parameters: tuple[Parameter, ...] = ()
    key: tuple[str, ...] = ()
    paging: Paging = "none"
    latest: bool = False
    points: int = 2
    add_on: bool = False
    own: bool = False
    binary: bool = False
    since: str = ""
    view: str = ""
    scale: Scale | None = None
    limit: CallLimit | None = None
    by_wire: dict[str, Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_wire", {one.name: one for one in self.parameters})

    @property
    def function(self) -> str:
        """Name of the fetch function: the type in snake case."""
        name = self.view or self.type
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)

    @property
    def page(self) -> Parameter | None:
        """The parameter that holds the page size, where there is one."""
        return self.by_wire.get("limit")


# ASSUMED: each of the two heavy snapshots has the limit for itself, and the cheap timestamps, which
# are meant to be polled, have none.
_SNAPSHOT_LIMIT = CallLimit(calls=5, seconds=600)

_USER = Parameter("user", "user", "address", "account", required=True)
_BUILDER = Parameter("builder", "builder", "address", "builder", required=True)
_ROUTED = Parameter("builder", "builder", "address", "only fills routed through this builder")
_START = Parameter("startTime", "start", "time", "first time, inclusive", required=True)
_START_OR_CURSOR = Parameter(
    "startTime", "start", "time", "first time, inclusive", required=True, unless="cursor"
)
_END = Parameter("endTime", "end", "time", "last time, inclusive; now when absent")
_CURSOR = Parameter("cursor", "cursor", "cursor", "continue after this key instead of start")
_PAGE = Parameter(
    "limit", "page_size", "whole", "rows of one page", default=2000, least=1, most=2000
)
_LATEST = Parameter(
    "limit", "max_rows", "whole", "most rows to return", default=2000, least=1, most=2000
)
_AGGREGATE = Parameter(
    "aggregateByTime",
    "aggregate_by_time",
    "flag",
    "merge the partial fills of one crossing order (same oid, coin, side and time; of a resting "
    "order only within one transaction): sz, fee, builderFee, deployerFee and closedPnl are summed "
    "exactly, px is the mean weighted by size, the rest is the first fill's",
    default=False,
)
_FILL_DEX = Parameter(
    "dex", "dex", "text", "only fills of this dex; main_dex is the native one", native="fills"
)
_DEX = Parameter("dex", "dex", "text", "dex; empty is the native one", default="", native="request")

OPERATIONS: Final[dict[str, Operation]] = {
    row.type: row
    for row in (
        Operation(
            "spotPairDeployAuctionStatus",
            "auctions",
            "State of the auction for deploying a spot pair.",
            r.AuctionStatus,
            (Table(r.AuctionStatus),),
        ),
        Operation(
            "perpDeployAuctionStatus",
            "auctions",
            "State of the auction for deploying a perp.",
            r.AuctionStatus,
            (Table(r.AuctionStatus),),
        ),
        Operation(
            "currentDepth",
            "market",
            "Cumulative book depth within six distances of the mid price, of every market.",
            r.Depth,
            (Table(r.DepthRow),),
            (
                Parameter(
                    "dex",
                    "dex",
                    "text",
                    "only markets of this dex; hyperliquid is the native one",
                    native="rows",
                ),
            ),
            points=5,
            add_on=True,
            own=True,
        ),
        Operation(
            "slippageHistory",
            "market",
            "What a market order of one size would have cost, every 15 minutes.",
            list[r.SlippageSample],
            (Table(r.SlippageSample),),
            (
                Parameter(
                    "coin",
                    "coin",
                    "text",
                    "coin, `<dex>:` in front",
                    required=True,
                    native="coin",
                ),
                Parameter(
                    "amount",
                    "amount",
                    "usd",
                    "USD notional: 1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5 or 1e6",
                    required=True,
                ),
                _START,
                _END,
                Parameter(
                    "limit", "page_size", "whole", "rows of one page", False, "", 500, 1, 2000
                ),
            ),
            key=("timestamp",),
            paging="forward",
            points=10,
        ),
        Operation(
            "meta",
            "market",
            "The perpetuals of a dex.",
            r.Meta,
            (Table(r.MetaRow),),
            (_DEX,),
        ),
        Operation(
            "metaAndAssetCtxs",
            "market",
            "The perpetuals of a dex with prices, funding, open interest and volume.",
            tuple[r.Meta, list[r.AssetContext]],
            (Table(r.ContextRow),),
            (_DEX,),
        ),
        Operation(
            "perpDexLimits",
            "market",
            "Open-interest and transfer limits of a builder-deployed dex.",
            r.DexLimits | None,
            (Table(r.DexCaps, "dex"), Table(r.CoinCapRow, "coins")),
            (
                Parameter(
                    "dex",
                    "dex",
                    "text",
                    "dex; empty is the native one",
                    required=True,
                    native="request",
                ),
            ),
        ),
        Operation(
            "accountValueSnapshotTimestamp",
            "snapshots",
            "Which account-value snapshot is the latest; cheap, meant to be polled.",
            r.SnapshotMetadata,
            (Table(r.SnapshotMetadata),),
            add_on=True,
        ),
        Operation(
            "accountValueSnapshots",
            "snapshots",
            "Account value, notionals and mode of every account, by collateral token.",
            list[r.AccountValueRow],
            (Table(r.AccountValueRow),),
            (
                Parameter(
                    "collateral_tokens",
                    "collateral_tokens",
                    "texts",
                    "`<token>`, `<dex>:<token>` or ALL",
                    required=True,
                    least=1,
                    native="token",
                ),
            ),
            add_on=True,
            own=True,
            binary=True,
            limit=_SNAPSHOT_LIMIT,
        ),
        Operation(
            "perpTwapSnapshotTimestamp",
            "snapshots",
            "Which TWAP snapshot is the latest; cheap, meant to be polled.",
            r.SnapshotMetadata,
            (Table(r.SnapshotMetadata),),
        ),
        Operation(
            "perpTwapSnapshots",
            "snapshots",
            "Every TWAP order that runs or waits, by market.",
            list[r.TwapRow],
            (Table(r.TwapRow),),
            (
                Parameter(
                    "market_names",
                    "market_names",
                    "texts",
                    "`<market>`, `<dex>:<market>`, ALL, `ALL:<dex>` or ALL:ALL_DEXES",
                    required=True,
                    least=1,
                    native="market",
                ),
            ),
            own=True,
            binary=True,
            limit=_SNAPSHOT_LIMIT,
        ),
        Operation(
            "userFills",
            "fills",
            "The latest fills of a user, newest first.",
            list[r.Fill],
            (Table(r.Fill, omits=("venue", "user")),),
            (_USER, _ROUTED, _AGGREGATE, _FILL_DEX, _LATEST),
            key=("time", "tx_index"),
            latest=True,
            points=10,
            since="2025-07-28",
        ),
        Operation(
            "userFillsByTime",
            "fills",
            "The fills of a user in a range of time, oldest first.",
            list[r.Fill],
            (Table(r.Fill, omits=("builder", "user")),),
            (
                _USER,
                _START_OR_CURSOR,
                _END,
                _CURSOR,
                _ROUTED,
                _AGGREGATE,
                _FILL_DEX,
                Parameter("venue", "venue", "venue", "only outcome markets of this venue"),
                _PAGE,
            ),
            key=("time", "tx_index"),
            paging="cursor",
            points=10,
            since="2025-07-28",
        ),
        Operation(
            "builderApprovedFillsByTime",
            "fills",
            "The fills of all users while they had approved a builder, oldest first.",
            list[r.Fill],
            (Table(r.Fill, omits=("venue",)),),
            (_BUILDER, _START_OR_CURSOR, _END, _CURSOR, _PAGE),
            key=("time", "tx_index"),
            paging="cursor",
            points=100,
            own=True,
            since="2025-07-28",
        ),
        Operation(
            "builderApprovedFundingByTime",
            "funding",
            "The funding payments of all users while they had approved a builder, oldest first.",
            list[r.FundingRow],
            (Table(r.FundingRow),),
            (_BUILDER, _START_OR_CURSOR, _END, _CURSOR, _PAGE),
            key=("time", "user", "delta.coin"),
            paging="cursor",
            points=100,  # ASSUMED: builderApprovedFundingByTime costs what its twin for fills does.
            own=True,
        ),
        Operation(
            "builderOrdersByTime",
            "orders",
            "The status events of orders placed via a builder, oldest first.",
            list[r.OrderStatus],
            (Table(r.OrderStatus, omits=("builder",)),),
            (_BUILDER, _START_OR_CURSOR, _END, _CURSOR),
            key=("status_timestamp", "tx_index"),
            paging="open cursor",
            points=5,
            own=True,
            since="2025-08-07",
        ),
        Operation(
            "historicalOrders",
            "orders",
            "The latest status events of a user's orders, newest first.",
            list[r.OrderStatus],
            (Table(r.OrderStatus, omits=("user",)),),
            (_USER, _LATEST),
            key=("status_timestamp", "tx_index"),
            latest=True,
            points=10,
            since="2025-08-07",
        ),
        Operation(
            "userNonFundingLedgerUpdates",
            "accounts",
            "Deposits, withdrawals, transfers and all else that moved a user's cash.",
            list[r.LedgerUpdate],
            (Table(r.LedgerUpdate),),
            (
                _USER,
                # ASSUMED: startTime reads as 0 when absent, since real clients send none.
                Parameter("startTime", "start", "time", "first time, inclusive", default=0),
                _END,
            ),
            key=("time",),
            paging="forward",
            points=10,
            since="2025-07-28",  # docs/live_service.md, section 8
        ),
        Operation(
            "batchClearinghouseStates",
            "accounts",
            "Margin and positions of many accounts at once.",
            r.BatchStates,
            (
                Table(r.AccountRow, "accounts"),
                Table(r.PositionRow, "positions"),
                Table(r.FailedRow, "failed"),
            ),
            (
                Parameter(
                    "users",
                    "users",
                    "addresses",
                    "at most 1000, 100 with ALL_DEXES",
                    True,
                    most=1000,
                ),
                Parameter(
                    "dex",
                    "dex",
                    "text",
                    "dex; empty: native; or ALL_DEXES",
                    default="",
                    native="request",
                ),
            ),
            points=100,
            scale=Scale(each=2, entries="users", dex="dex"),
            own=True,
        ),
        Operation(
            "borrowLendUserState",
            "accounts",
            "What a user has borrowed and supplied.",
            r.BorrowLend,
            (Table(r.BorrowLendAccount, "account"), Table(r.TokenRow, "tokens")),
            (_USER,),
        ),
        Operation(
            "delegations",
            "staking",
            "What a user has delegated to validators.",
            list[r.Delegation],
            (Table(r.Delegation),),
            (_USER,),
        ),
        Operation(
            "validatorAprHistory",
            "staking",
            "Weekly APR of a validator's delegators, newest first.",
            list[r.ValidatorWeek],
            (Table(r.ValidatorWeek),),
            (
                Parameter("validator", "validator", "address", "validator", required=True),
                Parameter("startTime", "start", "time", "earliest week, inclusive"),
                Parameter("endTime", "end", "time", "latest week, inclusive"),
                Parameter("limit", "page_size", "whole", "rows of one page", False, "", 12, 1, 100),
            ),
            key=("week",),
            paging="backward",
            since="2025-08-01",
        ),
    )
}
"""Every operation by its type, in the order of the specification."""

VIEWS: Final[dict[str, Operation]] = {
    row.view: row
    for row in (
        Operation(
            "meta",
            "market",
            "The margin tables of a dex, one row a tier.",
            r.Meta,
            (Table(r.MarginTierRow),),
            (_DEX,),
            view="marginTables",
        ),
    )
}
"""Further frames of answers, by name: each has a fetch function, and asks what `type` says."""


def get_operation(type: str) -> Operation:
    """Give the operation of a type.

    Raises
    ------
    KeyError
        If there is none; the message lists those that there are.

    Examples
    --------
    >>> get_operation("userFills").points
    10
    """
    try:
        return OPERATIONS[type]
    except KeyError:
        known = ", ".join(OPERATIONS)
        raise KeyError(f"there is no operation {type!r}; there are {known}") from None


def unknown_operation(type: str) -> Operation:
    """Return a stand-in for an operation that the contract does not know.

    It costs what most operations cost, and nothing is known of its answer.

    Examples
    --------
    >>> unknown_operation("portfolioState").points
    2
    """
    return Operation(type, "", "An operation that the contract does not know.", Any, ())
