"""The tables of the operations, one row each: 22 of the specification, and those beyond it.

Specification, "Endpoints" and "Limits".

Client, service, archive and docs read this table instead of asking for the type of an operation.
Tables by type have the functions for what a column cannot express: `toolkit.contract.rows` makes
rows of nested answers, `toolkit.contract.requests` checks parameters that depend on each other,
and `toolkit.contract.snapshots` reads the binary snapshots.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, get_args

from toolkit.contract import records as r
from toolkit.display import snake_case
from toolkit.times import FIRST_MONDAY, MINUTE, WEEK

ParameterKind = Literal[
    "address", "addresses", "text", "texts", "whole", "time", "usd", "flag", "cursor", "venue",
    "interval", "order",
]  # fmt: skip
Paging = Literal["none", "cursor", "open cursor", "forward", "backward", "windows"]

Parameters = Mapping[str, Any]
"""The parameters of a request by their names, in Python or on the wire."""

Headers = Mapping[str, str]
"""The headers of an answer."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a request.

    - ``name``: the name on the wire
    - ``python``: the name in the fetch function
    - ``kind``: the kind of value; `toolkit.contract.requests` checks it
    - ``meaning``: one line for the docs
    - ``required``: whether the service refuses a request without it
    - ``unless``: wire name of a parameter that can replace a required one
    - ``default``: the value that the service uses if the parameter is absent
    - ``least``, ``most``: range of a whole number; for lists, of the number of entries
    - ``within``: name of the object in the request that contains the parameter; empty: the request
      itself
    - ``dex_form``: how the parameter names the native dex: a form of
      `toolkit.contract.dexes.native_form`
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
    dex_form: str = ""

    @property
    def selects_part(self) -> bool:
        """Whether the parameter selects a part of an answer, such as a range or a page."""
        return self.kind in ("time", "cursor") or self.name == "limit"


class Table(NamedTuple):
    """One frame of an answer: the record of its rows, and the fields that the operation omits."""

    record: type[r.Record]
    name: str = ""
    omits: tuple[str, ...] = ()


class CallLimit(NamedTuple):
    """A limit on the number of requests of one operation, in addition to points.

    - ``calls``: the number of requests
    - ``seconds``: the length of the window in which they count
    """

    calls: int
    seconds: int


class Grid(NamedTuple):
    """The fixed times at which rows can exist, in milliseconds.

    - ``step``: the distance between two rows
    - ``offset``: the time of the first grid point after 1970-01-01
    """

    step: int
    offset: int = 0


class Gap(NamedTuple):
    """Days, both inclusive, for which the service does not have all rows."""

    first: str
    last: str
    words: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its request, its answer, its paging and its cost.

    - ``type``: the value of ``type`` in the request
    - ``topic``: the module of its fetch function and of the service's function
    - ``summary``: one line for the docs
    - ``answer``: the Python type of the answer
    - ``parameters``: the fields of the request, without ``type``
    - ``tables``: the frames that the answer becomes; empty: one of the records of the answer, or
      none if the answer can be anything
    - ``key``: paths of the fields that order the rows and make up a cursor
    - ``paging``: ``cursor`` (the page size is a parameter), ``open cursor`` (the page size is not
      known), ``forward`` and ``backward`` (by time, without a cursor), ``windows`` (ranges of at
      most ``most_rows`` intervals), or ``none``
    - ``latest``: whether the answer is limited to the latest rows by definition
    - ``points``: cost of one request; with `user_points`, the highest cost
    - ``user_points``: points for each of the `users` of a request. With ALL_DEXES, the points count
      once for each dex. 0 if the cost does not depend on the request.
    - ``limit``: a limit on the number of requests
    - ``add_on``: whether a key needs a separate permission
    - ``own``: whether only this service has the operation, and the mirrored API does not
    - ``extra``: whether the specification does not have the operation
    - ``has_function``: whether it has a fetch function, as all operations of the specification have
    - ``binary``: whether the answer is compressed MessagePack instead of JSON
    - ``since``: the first day for which the service has data
    - ``gaps``: later days for which the service does not have all rows
    - ``view``: the name of another frame of the same answer; empty for the usual one
    - ``name``: the name of the fetch function; empty for the type in snake case
    - ``subject``: Python names of the parameters that an answer is about. By default these are the
      required parameters that do not select a part of the answer. An optional parameter in this
      tuple is a filter.
    - ``answer_by_dex``: the Python type of the answer to a request for ALL_DEXES; None if there is
      no such request
    - ``grid``: the fixed times of the rows
    - ``unpublished``: the status of the answer before the first publication; 0 if there is always
      an answer
    - ``most_rows``: the most rows of one answer, if it has no page size; 0 if there is no limit, or
      none is known
    - ``reach``: how many of the latest rows the service keeps; 0 if it keeps all
    - ``skips_fills``: whether the accounts of its rows have fills between these rows
    - ``row_points``: how many rows of an answer cost one more point; 0 if rows cost nothing
    - ``from_archive``: of an operation beyond the specification: whether recorded answers have all
      that the answer is computed from
    - ``by_wire``: the parameters by their names on the wire
    - ``page``: the parameter of the page size, if there is one
    - ``filters``: the optional parameters that change which rows an answer has
    - ``is_history``: whether the answer is a history, which only grows at its end
    """

    type: str
    topic: str
    summary: str
    answer: Any
    parameters: tuple[Parameter, ...] = ()
    tables: tuple[Table, ...] = ()
    key: tuple[str, ...] = ()
    paging: Paging = "none"
    latest: bool = False
    points: int = 2
    add_on: bool = False
    own: bool = False
    extra: bool = False
    has_function: bool = False
    binary: bool = False
    since: str = ""
    gaps: tuple[Gap, ...] = ()
    view: str = ""
    name: str = ""
    user_points: int = 0
    limit: CallLimit | None = None
    subject: tuple[str, ...] = ()
    answer_by_dex: Any = None
    grid: Grid | None = None
    unpublished: int = 0
    most_rows: int = 0
    reach: int = 0
    skips_fills: bool = False
    row_points: int = 0
    from_archive: bool = False
    by_wire: dict[str, Parameter] = field(init=False, repr=False, compare=False)
    page: Parameter | None = field(init=False, repr=False, compare=False)
    filters: tuple[Parameter, ...] = field(init=False, repr=False, compare=False)
    is_history: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_wire = {parameter.name: parameter for parameter in self.parameters}
        choosing = [parameter for parameter in self.parameters if not parameter.selects_part]
        required = (parameter.python for parameter in choosing if parameter.required)
        filters = tuple(parameter for parameter in choosing if not parameter.required)
        if not self.tables and self.answer is not Any:
            record = next(iter(get_args(self.answer)), self.answer)
            object.__setattr__(self, "tables", (Table(record),))
        object.__setattr__(self, "by_wire", by_wire)
        object.__setattr__(self, "page", by_wire.get("limit"))
        object.__setattr__(self, "filters", filters)
        object.__setattr__(self, "subject", self.subject or tuple(required))
        is_history = self.paging in ("cursor", "open cursor", "forward")
        object.__setattr__(self, "is_history", is_history)

    @property
    def function(self) -> str:
        """The name of the fetch function."""
        return self.name or snake_case(self.view or self.type)

    def subject_of(self, parameters: Parameters) -> str:
        """Return the subject of an answer: an account, a builder, or a coin and an amount.

        Examples
        --------
        >>> slippage = OPERATIONS["slippageHistory"]
        >>> slippage.subject_of({"coin": "BTC", "amount": 1000.0, "start": 0})
        'BTC 1000'
        """
        values = [parameters[name] for name in self.subject]
        return " ".join(f"{v:.15g}" if isinstance(v, int | float) else str(v) for v in values)


# ASSUMED: Each of the two snapshots (`accountValueSnapshots`, `perpTwapSnapshots`) has its own
# limit of calls. The operations that return only the time of the latest snapshot have none.
_SNAPSHOT_LIMIT = CallLimit(calls=5, seconds=600)

# Specification, "Data availability".
TWAP_GAP = Gap("2025-07-28", "2025-08-01", "TWAP fills from before 2025-08-02 are missing")
_ORDER_GAP = Gap(
    "2025-08-07",
    "2025-11-04",
    "orders before 2025-11-05 may be missing: of users with more than 100,000 orders between "
    "2025-08-07 and 2025-11-04 the service keeps only the last 100,000",
)

USER = Parameter("user", "user", "address", "account", required=True)
BUILDER = Parameter("builder", "builder", "address", "builder", required=True)
_ROUTED = Parameter("builder", "builder", "address", "only fills routed through this builder")
START = Parameter("startTime", "start", "time", "first time, inclusive", required=True)
ANY_START = replace(START, required=False, default=0)
START_OR_CURSOR = replace(START, unless="cursor")
END = Parameter("endTime", "end", "time", "last time, inclusive; by default now")
CURSOR = Parameter(
    "cursor",
    "cursor",
    "cursor",
    "key after which to continue, instead of `start`; rows with this key are left out",
)
PAGE = Parameter(
    "limit", "page_size", "whole", "rows of one page", default=2000, least=1, most=2000
)
_LATEST = replace(PAGE, python="max_rows", meaning="most rows to return")
_AGGREGATE = Parameter(
    "aggregateByTime",
    "aggregate_by_time",
    "flag",
    "merge the partial fills of one order that have the same coin, side and time. For a resting "
    "order, merge only fills of the same transaction. sz, fee, builderFee, deployerFee and "
    "closedPnl are summed exactly. px is the size-weighted mean. Other fields come from the first "
    "fill",
    default=False,
)
FILL_DEX = Parameter(
    "dex", "dex", "text", "only fills of this dex; main_dex is the native one", dex_form="fills"
)
DEX = Parameter(
    "dex", "dex", "text", "dex; empty is the native one", default="", dex_form="request"
)
ANY_DEX = replace(DEX, meaning="dex, or ALL_DEXES; empty is the native one")
COIN = Parameter(
    "coin",
    "coin",
    "text",
    "name of the market; `<dex>:` in front on a builder-deployed dex",
    required=True,
    dex_form="coin",
)

# fmt: off
OPERATIONS: Final[dict[str, Operation]] = {
    row.type: row
    for row in (
        Operation("spotPairDeployAuctionStatus", "auctions",
            "State of the auction for deploying a spot pair.",
            r.AuctionStatus),
        Operation("perpDeployAuctionStatus", "auctions",
            "State of the auction for deploying a perp.",
            r.AuctionStatus),
        Operation("currentDepth", "market",
            "Cumulative book depth within six distances of the mid price, of every market.",
            r.Depth,
            (Parameter("dex", "dex", "text",
                 "only markets of this dex; hyperliquid is the native one", dex_form="rows"),),
            tables=(Table(r.DepthRow),), points=5, add_on=True, own=True, unpublished=500),
        Operation("slippageHistory", "market",
            "The cost that a market order of one size would have had, every 15 minutes.",
            list[r.SlippageSample],
            (COIN,
             Parameter("amount", "amount", "usd",
                 "USD notional: 1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5 or 1e6", required=True),
             START, END, replace(PAGE, default=500)),
            key=("timestamp",), paging="forward", points=10, grid=Grid(15 * MINUTE)),
        Operation("meta", "market", "The perpetuals of a dex.",
            r.Meta, (DEX,), tables=(Table(r.MetaRow),), subject=("dex",)),
        Operation("metaAndAssetCtxs", "market",
            "The perpetuals of a dex with prices, funding, open interest and volume.",
            tuple[r.Meta, list[r.AssetContext | None]], (DEX,), tables=(Table(r.ContextRow),),
            subject=("dex",)),
        Operation("perpDexLimits", "market",
            "Open-interest and transfer limits of a builder-deployed dex.",
            r.PerpDexLimits | None, (replace(DEX, required=True, default=None),),
            tables=(Table(r.PerpDexLimits, "dex"), Table(r.CoinCapRow, "coins"))),
        Operation("accountValueSnapshotTimestamp", "snapshots",
            "Id and time of the latest account-value snapshot; cheap, for polling.",
            r.SnapshotMetadata, add_on=True, unpublished=404),
        Operation("accountValueSnapshots", "snapshots",
            "Account value, notionals and mode of every account, by collateral token.",
            list[r.AccountValueRow],
            (Parameter("collateral_tokens", "collateral_tokens", "texts",
                 "`<token>`, `<dex>:<token>` or ALL", required=True, least=1, dex_form="token"),),
            add_on=True, own=True, binary=True, limit=_SNAPSHOT_LIMIT, unpublished=404),
        Operation("perpTwapSnapshotTimestamp", "snapshots",
            "Id and time of the latest TWAP snapshot; cheap, for polling.",
            r.SnapshotMetadata, unpublished=404),
        Operation("perpTwapSnapshots", "snapshots",
            "Every TWAP order that runs or waits, by market.",
            list[r.TwapRow],
            (Parameter("market_names", "market_names", "texts",
                 "`<market>`, `<dex>:<market>`, ALL, `ALL:<dex>` or ALL:ALL_DEXES",
                 required=True, least=1, dex_form="market"),),
            own=True, binary=True, limit=_SNAPSHOT_LIMIT, unpublished=404),
        Operation("userFills", "fills", "The latest fills of a user, newest first.",
            list[r.Fill], (USER, _ROUTED, _AGGREGATE, FILL_DEX, _LATEST),
            tables=(Table(r.Fill, omits=("venue", "user")),), key=("time", "tx_index"), latest=True,
            points=10, since="2025-07-28", subject=("user", "builder", "dex")),
        Operation("userFillsByTime", "fills",
            "The fills of a user in a range of time, oldest first.",
            list[r.Fill],
            (USER, START_OR_CURSOR, END, CURSOR, _ROUTED, _AGGREGATE, FILL_DEX,
             Parameter("venue", "venue", "venue", "only outcome markets of this venue"), PAGE),
            tables=(Table(r.Fill, omits=("builder", "user")),), key=("time", "tx_index"),
            paging="cursor", points=10, since="2025-07-28", gaps=(TWAP_GAP,)),
        Operation("builderApprovedFillsByTime", "fills",
            "The fills of users while their approval of a builder was active, oldest first.",
            list[r.Fill], (BUILDER, START_OR_CURSOR, END, CURSOR, PAGE),
            tables=(Table(r.Fill, omits=("venue",)),), key=("time", "tx_index"), paging="cursor",
            points=100, own=True, since="2025-07-28", gaps=(TWAP_GAP,)),
        # ASSUMED: `builderApprovedFundingByTime` costs as much as `builderApprovedFillsByTime`.
        Operation("builderApprovedFundingByTime", "funding",
            "The funding payments of users while their approval of a builder was active, "
            "oldest first.",
            list[r.FundingRow], (BUILDER, START_OR_CURSOR, END, CURSOR, PAGE),
            key=("time", "user", "delta.coin"), paging="cursor", points=100, own=True),
        Operation("builderOrdersByTime", "orders",
            "The status events of orders placed via a builder, oldest first.",
            list[r.OrderStatus], (BUILDER, START_OR_CURSOR, END, CURSOR),
            tables=(Table(r.OrderStatus, omits=("builder",)),),
            key=("status_timestamp", "tx_index"), paging="open cursor", points=5, own=True,
            since="2025-08-07", gaps=(_ORDER_GAP,)),
        Operation("historicalOrders", "orders",
            "The latest status events of a user's orders, newest first.",
            list[r.OrderStatus], (USER, _LATEST), tables=(Table(r.OrderStatus, omits=("user",)),),
            key=("status_timestamp", "tx_index"), latest=True, points=10, since="2025-08-07"),
        # ASSUMED: If `startTime` of `userNonFundingLedgerUpdates` is absent, it is 0, because real
        # clients send none. For the first day of ledger data see docs/live_service.md, section 8.
        Operation("userNonFundingLedgerUpdates", "accounts",
            "Deposits, withdrawals, transfers and other changes of a user's balances.",
            list[r.LedgerUpdate], (USER, ANY_START, END), key=("time",), paging="forward",
            points=10, since="2025-07-28"),
        Operation("batchClearinghouseStates", "accounts",
            "Margin and positions of many accounts at once.",
            r.BatchStates,
            (Parameter("users", "users", "addresses",
                 "at most 1,000 accounts, or 100 with ALL_DEXES", True, most=1000), ANY_DEX),
            tables=(Table(r.AccountRow, "accounts"), Table(r.PositionRow, "positions"),
                    Table(r.FailedRow, "failed")),
            points=100, user_points=2, own=True, subject=("dex", "users"),
            answer_by_dex=r.BatchStatesByDex),
        Operation("borrowLendUserState", "accounts", "What a user has borrowed and supplied.",
            r.BorrowLend, (USER,),
            tables=(Table(r.BorrowLend, "account"), Table(r.TokenRow, "tokens"))),
        Operation("delegations", "staking", "What a user has delegated to validators.",
            list[r.Delegation], (USER,)),
        Operation("validatorAprHistory", "staking",
            "Weekly APR of a validator's delegators, newest first.",
            list[r.ValidatorWeek],
            (Parameter("validator", "validator", "address", "validator", required=True),
             replace(START, required=False, meaning="earliest week, inclusive"),
             replace(END, meaning="latest week, inclusive"), replace(PAGE, default=12, most=100)),
            key=("week",), paging="backward", since="2025-08-01",
            grid=Grid(WEEK, offset=FIRST_MONDAY)),
    )
}
# fmt: on
"""Every operation by its type, in the order of the specification."""

# fmt: off
VIEWS: Final[dict[str, Operation]] = {
    "marginTables": Operation("meta", "market",
        "The margin tables of a dex, with one row for each tier.",
        r.Meta, (DEX,), tables=(Table(r.MarginTierRow),), view="marginTables"),
}
# fmt: on
"""Further frames of answers by name. Each has a fetch function that sends `type`."""

# Operations beyond the specification: docs/live_service.md, section 9. Each is a public operation
# of the exchange's info API. The live service answers them, and some third-party clients need them
# at start. The local service answers them by default. Those with `has_function` have a fetch
# function; `tk.info` sends the others.
_ORDER_OMITS = ("user", "builder", "builder_fee", "tx_index")

# fmt: off
EXTRA_OPERATIONS: Final[dict[str, Operation]] = {
    row.type: replace(row, extra=True)
    for row in (
        Operation("spotMeta", "market", "The tokens and the spot markets.",
            r.SpotMeta, tables=(Table(r.SpotPair, "pairs"), Table(r.SpotToken, "tokens")),
            has_function=True),
        Operation("spotMetaAndAssetCtxs", "market",
            "The spot markets with prices, volume and supply.",
            tuple[r.SpotMeta, list[r.SpotContext | None]],
            tables=(Table(r.SpotMarketRow, "markets"), Table(r.SpotToken, "tokens"))),
        Operation("perpDexs", "market",
            "The builder-deployed dexes; null stands for the native dex.",
            list[r.PerpDex | None], tables=(Table(r.PerpDex),)),
        Operation("allMids", "market", "The mid price of every market.",
            dict[str, str], (DEX,), tables=(Table(r.MidRow),), subject=("dex",), from_archive=True,
            has_function=True),
        Operation("predictedFundings", "market",
            "The next funding rate of every perp on this exchange and on others.",
            list[tuple[str, list[tuple[str, r.PredictedFunding | None]]]],
            tables=(Table(r.PredictedFundingRow),), has_function=True),
        Operation("fundingHistory", "market",
            "The funding rates of a coin in a range of time, oldest first.",
            list[r.FundingRate], (COIN, START, END), key=("time",), paging="forward", points=5,
            most_rows=500, has_function=True),
        Operation("candleSnapshot", "market",
            "The candles of a coin in a range of time, oldest first.",
            list[r.Candle],
            (replace(COIN, within="req"),
             Parameter("interval", "interval", "interval", "length of a candle", True,
                 within="req"),
             replace(START, within="req"), replace(END, within="req")),
            key=("start_time",), paging="windows", most_rows=5_000, has_function=True,
            name="candles"),
        # ASSUMED: An answer of `openInterestHistory` has at least 500 rows, if there are so many.
        # Without `interval`, it is an hour.
        Operation("openInterestHistory", "market",
            "The open interest of a market or of a sector by interval, oldest first.",
            list[r.OpenInterest],
            (START, END, replace(COIN, required=False),
             Parameter("sector", "sector", "text", "a group of markets, instead of `coin`"),
             Parameter("interval", "interval", "interval", "length, from 1m", default="1h")),
            key=("time",), paging="windows", most_rows=500, own=True, since="2025-08-01",
            has_function=True),
        Operation("l2Book", "market",
            "The order book of a coin, at most 20 levels on each side; null if there is no book.",
            r.L2Book | None,
            (COIN,
             Parameter("nSigFigs", "n_sig_figs", "whole",
                 "significant digits of prices, which are rounded away from the mid price",
                 least=2, most=5),
             Parameter("mantissa", "mantissa", "whole",
                 "if nSigFigs is 5: the last digit is a multiple of 1, 2 or 5", least=1, most=5)),
            tables=(Table(r.BookLevelRow),), from_archive=True),
        Operation("outcomeMeta", "market", "The outcome markets and their questions.",
            r.OutcomeMeta,
            tables=(Table(r.Outcome, "outcomes"), Table(r.OutcomeQuestion, "questions"))),
        Operation("exchangeStatus", "market",
            "The present time of the exchange, and its special states.",
            r.ExchangeStatus, from_archive=True),
        Operation("userTwapSliceFills", "fills",
            "The latest fills of a user's TWAP orders, newest first.",
            list[r.TwapSliceFill], (USER,),
            tables=(Table(r.TwapSliceFill, omits=("fill.venue", "fill.user", "fill.twap_id")),),
            points=10, most_rows=2_000, from_archive=True, has_function=True),
        # ASSUMED: A row of `builderFillsByTime` has the fields of `builderApprovedFillsByTime`.
        Operation("builderFillsByTime", "fills",
            "The fills of all users that were routed through a builder, oldest first.",
            list[r.Fill], (BUILDER, START_OR_CURSOR, END, CURSOR, PAGE),
            tables=(Table(r.Fill, omits=("venue",)),), key=("time", "tx_index"), paging="cursor",
            points=5, own=True, since="2025-07-28", gaps=(TWAP_GAP,), from_archive=True,
            has_function=True, skips_fills=True),
        # ASSUMED: A row of `liquidationHistoryByTime` is the fill of the liquidated account, with
        # `user` and `liquidation`. A request without `startTime` begins with the first day.
        Operation("liquidationHistoryByTime", "fills",
            "The liquidations of one market or of all, newest first.",
            list[r.Fill],
            (replace(COIN, required=False, meaning="only this market; by default all"),
             replace(START, required=False), END, replace(PAGE, default=500, most=1_000)),
            tables=(Table(r.Fill, omits=("venue",)),), key=("time",), paging="backward", own=True,
            since="2025-07-28", has_function=True, skips_fills=True),
        Operation("userFunding", "funding",
            "The funding payments of a user in a range of time, oldest first.",
            list[r.FundingRow], (USER, ANY_START, END),
            tables=(Table(r.FundingRow, omits=("user",)),), key=("time", "delta.coin"),
            paging="forward", points=10, most_rows=500, from_archive=True, has_function=True),
        # ASSUMED: A page of `userCompletedTradesByTime` has 100 rows by default.
        Operation("userCompletedTradesByTime", "trades",
            "The perp positions of a user from flat to flat, by the time of their end.",
            list[r.CompletedTrade],
            (USER, START_OR_CURSOR, END, CURSOR, FILL_DEX, replace(PAGE, default=100, most=500)),
            tables=(Table(r.CompletedTrade, omits=("user",)),), key=("close_time", "tx_index"),
            paging="cursor", points=20, own=True, since="2025-08-01", has_function=True),
        Operation("userPnlSummary", "trades",
            "PnL, win rate, volume and fees of a user's completed trades.",
            r.PnlSummary,
            (USER,
             replace(START, required=False, meaning="only trades that ended at this time or later"),
             replace(END, meaning="only trades that ended at this time or earlier"), FILL_DEX),
            points=20, own=True, since="2025-08-01", has_function=True),
        Operation("openOrders", "orders", "The open orders of a user, newest first.",
            list[r.OpenOrder], (USER, DEX), from_archive=True),
        Operation("frontendOpenOrders", "orders",
            "The open orders of a user with triggers and types, newest first.",
            list[r.Order], (USER, DEX), from_archive=True),
        Operation("orderStatus", "orders",
            "The last status of one order, by its id or its client order id.",
            r.OrderLookup,
            (USER, Parameter("oid", "oid", "order", "order id, or client order id", required=True)),
            tables=(Table(r.OrderStatus, omits=_ORDER_OMITS),), from_archive=True),
        Operation("clearinghouseState", "accounts", "Margin and positions of one account.",
            r.ClearinghouseState, (USER, DEX),
            tables=(Table(r.AccountRow, "accounts"), Table(r.PositionRow, "positions")),
            subject=("dex", "user"), from_archive=True),
        Operation("spotClearinghouseState", "accounts", "The spot balances of an account.",
            r.SpotState, (USER,), tables=(Table(r.SpotBalance),)),
        # ASSUMED: `portfolioState` costs 5 points, also with ALL_DEXES.
        Operation("portfolioState", "accounts",
            "The capital of an account: perps, spot balances and mode in one.",
            r.PortfolioState, (USER, ANY_DEX),
            tables=(Table(r.ModeRow, "mode"), Table(r.AccountRow, "accounts"),
                    Table(r.PositionRow, "positions"), Table(r.SpotBalance, "balances")),
            subject=("dex", "user"), points=5, own=True, answer_by_dex=r.PortfolioStateByDex,
            has_function=True),
        # ASSUMED: `userBorrowLendInterest` returns at most 500 rows, as other lists do.
        Operation("userBorrowLendInterest", "accounts",
            "The interest of what a user has borrowed and supplied, oldest first.",
            list[r.LendInterest], (USER, ANY_START, END), key=("time", "token"), paging="forward",
            most_rows=500, has_function=True),
        Operation("apiUsage", "accounts",
            "The requests and the tokens of the key, by day and type.",
            list[r.ApiUsage],
            (Parameter("days", "days", "whole", "number of days, with today",
                 default=30, least=1, most=366),),
            own=True, from_archive=True),
        Operation("userVaultEquities", "accounts", "The equity of a user in vaults.",
            list[r.VaultEquity], (USER,)),
        Operation("vaultDetails", "accounts", "A vault, its history and its largest followers.",
            r.VaultDetails | None,
            (Parameter("vaultAddress", "vault_address", "address", "vault", required=True),
             Parameter("user", "user", "address", "also the share of this account")),
            tables=(Table(r.VaultDetails, "vault"), Table(r.PortfolioRow, "portfolio"),
                    Table(r.VaultFollower, "followers")),
            has_function=True),
        Operation("subAccounts", "accounts", "The sub-accounts of a user, with their states.",
            list[r.SubAccount] | None, (USER,), tables=(Table(r.SubAccountRow),)),
        Operation("userRole", "accounts",
            "The role of an address: user, vault, agent, sub-account or missing.",
            r.UserRole, (USER,)),
        Operation("userFees", "accounts", "The fee rates and the daily volume of a user.",
            r.UserFees, (USER,)),
        Operation("userRateLimit", "accounts",
            "The number of requests that a user has sent to the exchange, and the limit.",
            r.UserRateLimit, (USER,)),
        Operation("portfolio", "accounts",
            "Account value and PnL of a user over a day, a week, a month and all time.",
            list[tuple[str, r.Portfolio]], (USER,), tables=(Table(r.PortfolioRow),)),
        Operation("delegatorSummary", "staking",
            "The staked balance of a user: delegated and undelegated.",
            r.DelegatorSummary, (USER,)),
        Operation("delegatorHistory", "staking", "The changes of a user's stake, newest first.",
            list[r.DelegatorEvent], (USER,), most_rows=2_000),
        Operation("delegatorRewards", "staking", "The staking rewards of a user, newest first.",
            list[r.DelegatorReward], (USER,), most_rows=2_000),
        *(Operation(type, topic, summary, Any, (USER,)) for type, topic, summary in (
            ("extraAgents", "accounts", "The named agents of a user."),
            ("referral", "accounts", "The referrals of a user, and their rewards."),
            ("spotDeployState", "auctions",
             "The spot tokens that a user is deploying, and their auction."),
            ("userAbstraction", "accounts",
             "The account mode of a user: separate or unified balances."),
            ("userDexAbstraction", "accounts",
             "Whether dexes may use the other balances of a user; null if the user never set it."),
            ("userToMultiSigSigners", "accounts",
             "The signers of a multi-signature account; null for other accounts."),
        )),
    )
}
# fmt: on
"""Each operation beyond the specification by its type, ordered by topic.

No record describes the answer of an operation without tables."""


FETCHED: Final[dict[str, Operation]] = OPERATIONS | {
    type: operation for type, operation in EXTRA_OPERATIONS.items() if operation.has_function
}
"""Each operation that has a fetch function, by its type."""


def find_operation(type: str, *, strict: bool = False) -> Operation | None:
    """Return the operation of a type, or None if there is none.

    - ``type``: the value of ``type`` in the request
    - ``strict``: whether only the operations of the specification count

    >>> find_operation("allMids").topic
    'market'
    >>> find_operation("allMids", strict=True) is None
    True
    """
    return OPERATIONS.get(type) or (None if strict else EXTRA_OPERATIONS.get(type))


def known_operation(type: str) -> Operation:
    """Return the operation of a type, or a placeholder if the contract does not know it.

    A placeholder costs what most operations cost, and its answer can be anything.

    >>> known_operation("userFunding").points, known_operation("userLeverage").topic
    (10, '')
    """
    words = "An operation that the contract does not know."
    return find_operation(type) or Operation(type, "", words, Any, extra=True)
