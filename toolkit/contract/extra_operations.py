"""Operations beyond the specification. docs/live_service.md, section 9.

Each is a public operation of the exchange's info API. The live service answers them, and some
third-party clients need them at start. The local service answers them by default. Those with
`has_function` have a fetch function; `tk.info` sends the others.
"""

from dataclasses import replace
from typing import Any, Final

from toolkit.contract import records as r
from toolkit.contract.operations import (
    ANY_DEX,
    ANY_START,
    BUILDER,
    COIN,
    CURSOR,
    DEX,
    END,
    FILL_DEX,
    OPERATIONS,
    PAGE,
    START,
    START_OR_CURSOR,
    TWAP_GAP,
    USER,
    Operation,
    Parameter,
    Table,
)

_ORDER_OMITS = ("user", "builder", "builder_fee", "tx_index")

# fmt: off
EXTRA_OPERATIONS: Final[dict[str, Operation]] = {
    row.type: replace(row, extra=True)
    for row in (
        Operation("spotMeta", "market", "The tokens and the spot markets.",
            r.SpotMeta, (Table(r.SpotPair, "pairs"), Table(r.SpotToken, "tokens")),
            has_function=True),
        Operation("spotMetaAndAssetCtxs", "market",
            "The spot markets with prices, volume and supply.",
            tuple[r.SpotMeta, list[r.SpotContext | None]],
            (Table(r.SpotMarketRow, "markets"), Table(r.SpotToken, "tokens"))),
        Operation("perpDexs", "market",
            "The builder-deployed dexes; null stands for the native dex.",
            list[r.PerpDex | None], (Table(r.PerpDex),)),
        Operation("allMids", "market", "The mid price of every market.",
            dict[str, str], (Table(r.MidRow),), (DEX,),
            subject=("dex",), from_archive=True, has_function=True),
        Operation("predictedFundings", "market",
            "The next funding rate of every perp on this exchange and on others.",
            list[tuple[str, list[tuple[str, r.PredictedFunding | None]]]],
            (Table(r.PredictedFundingRow),), has_function=True),
        Operation("fundingHistory", "market",
            "The funding rates of a coin in a range of time, oldest first.",
            list[r.FundingRate], (Table(r.FundingRate),), (COIN, START, END),
            key=("time",), paging="forward", points=5, most_rows=500, has_function=True),
        Operation("candleSnapshot", "market",
            "The candles of a coin in a range of time, oldest first.",
            list[r.Candle], (Table(r.Candle),),
            (replace(COIN, within="req"),
             Parameter(
                 "interval", "interval", "interval", "length of a candle", True, within="req"),
             replace(START, within="req"), replace(END, within="req")),
            key=("start_time",), paging="windows", most_rows=5_000, has_function=True,
            name="candles"),
        # ASSUMED: An answer of `openInterestHistory` has at least 500 rows, if there are so many.
        # Without `interval`, it is an hour.
        Operation("openInterestHistory", "market",
            "The open interest of a market or of a sector by interval, oldest first.",
            list[r.OpenInterest], (Table(r.OpenInterest),),
            (START, END, replace(COIN, required=False),
             Parameter("sector", "sector", "text", "a group of markets, instead of `coin`"),
             Parameter("interval", "interval", "interval", "length, from 1m", default="1h")),
            key=("time",), paging="windows", most_rows=500, own=True, since="2025-08-01",
            has_function=True),
        Operation("l2Book", "market",
            "The order book of a coin, at most 20 levels on each side; null if there is no book.",
            r.L2Book | None, (Table(r.BookLevelRow),),
            (COIN,
             Parameter("nSigFigs", "n_sig_figs", "whole",
                 "significant digits of prices, which are rounded away from the mid price",
                 least=2, most=5),
             Parameter("mantissa", "mantissa", "whole",
                 "if nSigFigs is 5: the last digit is a multiple of 1, 2 or 5", least=1, most=5)),
            from_archive=True),
        Operation("outcomeMeta", "market", "The outcome markets and their questions.",
            r.OutcomeMeta, (Table(r.Outcome, "outcomes"), Table(r.OutcomeQuestion, "questions"))),
        Operation("exchangeStatus", "market",
            "The present time of the exchange, and its special states.",
            r.ExchangeStatus, (Table(r.ExchangeStatus),),
            from_archive=True),
        Operation("userTwapSliceFills", "fills",
            "The latest fills of a user's TWAP orders, newest first.",
            list[r.TwapSliceFill],
            (Table(r.TwapSliceFill, omits=("fill.venue", "fill.user", "fill.twap_id")),), (USER,),
            points=10, most_rows=2_000, from_archive=True, has_function=True),
        # ASSUMED: A row of `builderFillsByTime` has the fields of `builderApprovedFillsByTime`.
        Operation("builderFillsByTime", "fills",
            "The fills of all users that were routed through a builder, oldest first.",
            list[r.Fill], (Table(r.Fill, omits=("venue",)),),
            (BUILDER, START_OR_CURSOR, END, CURSOR, PAGE),
            key=("time", "tx_index"), paging="cursor", points=5, own=True, since="2025-07-28",
            gaps=(TWAP_GAP,), from_archive=True, has_function=True, skips_fills=True),
        # ASSUMED: A row of `liquidationHistoryByTime` is the fill of the liquidated account, with
        # `user` and `liquidation`. A request without `startTime` begins with the first day.
        Operation("liquidationHistoryByTime", "fills",
            "The liquidations of one market or of all, newest first.",
            list[r.Fill], (Table(r.Fill, omits=("venue",)),),
            (replace(COIN, required=False, meaning="only this market; by default all"),
             replace(START, required=False), END, replace(PAGE, default=500, most=1_000)),
            key=("time",), paging="backward", own=True, since="2025-07-28",
            has_function=True, skips_fills=True),
        Operation("userFunding", "funding",
            "The funding payments of a user in a range of time, oldest first.",
            list[r.FundingRow], (Table(r.FundingRow, omits=("user",)),), (USER, ANY_START, END),
            key=("time", "delta.coin"), paging="forward", points=10,
            most_rows=500, from_archive=True, has_function=True),
        # ASSUMED: A page of `userCompletedTradesByTime` has 100 rows by default.
        Operation("userCompletedTradesByTime", "trades",
            "The perp positions of a user from flat to flat, by the time of their end.",
            list[r.CompletedTrade], (Table(r.CompletedTrade, omits=("user",)),),
            (USER, START_OR_CURSOR, END, CURSOR, FILL_DEX,
             replace(PAGE, default=100, most=500)),
            key=("close_time", "tx_index"), paging="cursor", points=20, own=True,
            since="2025-08-01", has_function=True),
        Operation("userPnlSummary", "trades",
            "PnL, win rate, volume and fees of a user's completed trades.",
            r.PnlSummary, (Table(r.PnlSummary),),
            (USER,
             replace(START, required=False, meaning="only trades that ended at this time or later"),
             replace(END, meaning="only trades that ended at this time or earlier"),
             FILL_DEX),
            points=20, own=True, since="2025-08-01", has_function=True),
        Operation("openOrders", "orders", "The open orders of a user, newest first.",
            list[r.OpenOrder], (Table(r.OpenOrder),), (USER, DEX),
            from_archive=True),
        Operation("frontendOpenOrders", "orders",
            "The open orders of a user with triggers and types, newest first.",
            list[r.Order], (Table(r.Order),), (USER, DEX),
            from_archive=True),
        Operation("orderStatus", "orders",
            "The last status of one order, by its id or its client order id.",
            r.OrderLookup, (Table(r.OrderStatus, omits=_ORDER_OMITS),),
            (USER, Parameter("oid", "oid", "order", "order id, or client order id", required=True)),
            from_archive=True),
        Operation("clearinghouseState", "accounts", "Margin and positions of one account.",
            r.ClearinghouseState,
            (Table(r.AccountRow, "accounts"), Table(r.PositionRow, "positions")), (USER, DEX),
            subject=("dex", "user"), from_archive=True),
        Operation("spotClearinghouseState", "accounts", "The spot balances of an account.",
            r.SpotState, (Table(r.SpotBalance),), (USER,)),
        # ASSUMED: `portfolioState` costs 5 points, also with ALL_DEXES.
        Operation("portfolioState", "accounts",
            "The capital of an account: perps, spot balances and mode in one.",
            r.PortfolioState,
            (Table(r.ModeRow, "mode"), Table(r.AccountRow, "accounts"),
             Table(r.PositionRow, "positions"), Table(r.SpotBalance, "balances")),
            (USER,
             ANY_DEX),
            subject=("dex", "user"), points=5, own=True, answer_by_dex=r.PortfolioStateByDex,
            has_function=True),
        # ASSUMED: `userBorrowLendInterest` returns at most 500 rows, as other lists do.
        Operation("userBorrowLendInterest", "accounts",
            "The interest of what a user has borrowed and supplied, oldest first.",
            list[r.LendInterest], (Table(r.LendInterest),), (USER, ANY_START, END),
            key=("time", "token"), paging="forward", most_rows=500, has_function=True),
        Operation("apiUsage", "accounts",
            "The requests and the tokens of the key, by day and type.",
            list[r.ApiUsage], (Table(r.ApiUsage),),
            (Parameter("days", "days", "whole", "number of days, with today",
                 default=30, least=1, most=366),),
            own=True, from_archive=True),
        Operation("userVaultEquities", "accounts", "The equity of a user in vaults.",
            list[r.VaultEquity], (Table(r.VaultEquity),), (USER,)),
        Operation("vaultDetails", "accounts", "A vault, its history and its largest followers.",
            r.VaultDetails | None,
            (Table(r.VaultDetails, "vault"), Table(r.PortfolioRow, "portfolio"),
             Table(r.VaultFollower, "followers")),
            (Parameter("vaultAddress", "vault_address", "address", "vault", required=True),
             Parameter("user", "user", "address", "also the share of this account")),
            has_function=True),
        Operation("subAccounts", "accounts", "The sub-accounts of a user, with their states.",
            list[r.SubAccount] | None, (Table(r.SubAccountRow),), (USER,)),
        Operation("userRole", "accounts",
            "The role of an address: user, vault, agent, sub-account or missing.",
            r.UserRole, (Table(r.UserRole),), (USER,)),
        Operation("userFees", "accounts", "The fee rates and the daily volume of a user.",
            r.UserFees, (Table(r.UserFees),), (USER,)),
        Operation("userRateLimit", "accounts",
            "The number of requests that a user has sent to the exchange, and the limit.",
            r.UserRateLimit, (Table(r.UserRateLimit),), (USER,)),
        Operation("portfolio", "accounts",
            "Account value and PnL of a user over a day, a week, a month and all time.",
            list[tuple[str, r.Portfolio]], (Table(r.PortfolioRow),), (USER,)),
        Operation("delegatorSummary", "staking",
            "The staked balance of a user: delegated and undelegated.",
            r.DelegatorSummary, (Table(r.DelegatorSummary),), (USER,)),
        Operation("delegatorHistory", "staking", "The changes of a user's stake, newest first.",
            list[r.DelegatorEvent], (Table(r.DelegatorEvent),), (USER,), most_rows=2_000),
        Operation("delegatorRewards", "staking", "The staking rewards of a user, newest first.",
            list[r.DelegatorReward], (Table(r.DelegatorReward),), (USER,), most_rows=2_000),
        Operation("extraAgents", "accounts", "The named agents of a user.",
            Any, (), (USER,)),
        Operation("referral", "accounts", "The referrals of a user, and their rewards.",
            Any, (), (USER,)),
        Operation("spotDeployState", "auctions",
            "The spot tokens that a user is deploying, and their auction.",
            Any, (), (USER,)),
        Operation("userAbstraction", "accounts",
            "The account mode of a user: separate or unified balances.",
            Any, (), (USER,)),
        Operation("userDexAbstraction", "accounts",
            "Whether dexes may use the other balances of a user; null if the user never set it.",
            Any, (), (USER,)),
        Operation("userToMultiSigSigners", "accounts",
            "The signers of a multi-signature account; null for other accounts.",
            Any, (), (USER,)),
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
    return find_operation(type) or Operation(type, "", words, Any, (), extra=True)
