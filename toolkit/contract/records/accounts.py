"""Accounts. Specification, "Clearinghouse state" and "Borrow/lend user state".

Sub-accounts, vaults, roles, fees and portfolios: docs/live_service.md, section 9.

Records named ``...Row`` are not on the wire. They are the rows of frames of nested answers.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record, Text, Whole
from toolkit.contract.records.spot import SpotState

_Abstraction = Annotated[
    str, k.WORD("default, disabled, dexAbstraction, unifiedAccount or portfolioMargin")
]


class MarginSummary(Record, kw_only=True):
    """Sums over the positions of an account."""

    account_value: Annotated[str, k.USD("account value")]
    total_margin_used: Annotated[str, k.USD("margin in use")]
    total_ntl_pos: Annotated[str, k.USD("sum of position values")]
    total_raw_usd: Annotated[str, k.USD("cash; account value less signed position values")]
    # Old answers have it at the top level.
    withdrawable: Annotated[Text, k.USD("amount that may be withdrawn", lacked=True)] = UNSET


class Leverage(Record, kw_only=True):
    """The leverage of a position."""

    type: Annotated[str, k.WORD("cross or isolated")]
    value: Annotated[int, k.COUNT("how many times")]
    raw_usd: Annotated[Text, k.USD("cash of an isolated position", beyond=1)] = UNSET


class CumFunding(Record, kw_only=True):
    """The funding that a position has paid: positive is paid, negative is received."""

    all_time: Annotated[str, k.USD("funding paid in this coin since the account exists", beyond=1)]
    since_open: Annotated[str, k.USD("funding paid since the position was opened", beyond=1)]
    since_change: Annotated[str, k.USD("funding paid since the size last changed", beyond=1)]


class Position(Record, kw_only=True):
    """A position in one perpetual."""

    coin: Annotated[str, k.COIN("name of the market", key=True)]
    entry_px: Annotated[str | None, k.PRICE("average entry price")]
    leverage: Annotated[Leverage, k.NESTED("leverage", prefix="leverage_")]
    liquidation_px: Annotated[str | None, k.PRICE("liquidation price; missing when there is none")]
    margin_used: Annotated[str, k.USD("margin in use")]
    # Answers since 2025 lack it.
    max_trade_szs: Annotated[
        list[str], k.NESTED("largest sizes that can be traded, two values", lacked=True)
    ]
    position_value: Annotated[str, k.USD("notional at the mark price")]
    return_on_equity: Annotated[str, k.RATE("unrealised PnL over margin")]
    szi: Annotated[str, k.SIZE("position size; negative: short", key=True)]
    unrealized_pnl: Annotated[str, k.USD("unrealised PnL; negative: a loss")]
    max_leverage: Annotated[Whole, k.COUNT("maximum leverage of the coin", beyond=1)] = UNSET
    cum_funding: Annotated[
        CumFunding | UnsetType, k.NESTED("", prefix="cum_funding_", beyond=1)
    ] = UNSET


class AssetPosition(Record, kw_only=True):
    """A position and its mode."""

    type: Annotated[str, k.WORD("position mode, e.g. oneWay")]
    position: Annotated[Position, k.NESTED("the position", key=True)]


class ClearinghouseState(Record, kw_only=True):
    """The perp account of one user on one dex."""

    margin_summary: Annotated[MarginSummary, k.NESTED("all positions")]
    cross_margin_summary: Annotated[MarginSummary, k.NESTED("cross positions", prefix="cross_")]
    asset_positions: Annotated[list[AssetPosition], k.ROWS("the positions")]
    # Recordings of 2023 lack it.
    time: Annotated[int, k.TIME("time of the state", lacked=True)]
    withdrawable: Annotated[
        Text, k.USD("amount that may be withdrawn, where it is not in marginSummary", beyond=1)
    ] = UNSET
    cross_maintenance_margin_used: Annotated[
        Text, k.USD("maintenance margin of the cross positions", beyond=1)
    ] = UNSET


class BatchStates(Record, kw_only=True, rename=None):
    """The answer of `batchClearinghouseStates`; its names are snake case on the wire."""

    successful_states: Annotated[
        list[tuple[str, ClearinghouseState]], k.ROWS("pairs of address and state", key=True)
    ]
    failed_wallets: Annotated[list[str], k.ROWS("addresses whose state could not be had")]


class BatchStatesByDex(Record, kw_only=True, rename=None):
    """The answer of `batchClearinghouseStates` for ALL_DEXES."""

    successful_states: Annotated[
        list[tuple[str, dict[str, ClearinghouseState]]],
        k.ROWS(
            "pairs of address and states; these are keyed by dex, the native one `native`", key=True
        ),
    ]
    failed_wallets: Annotated[list[str], k.ROWS("addresses whose state could not be had")]


class AccountRow(Record, kw_only=True):
    """One user's perp account on one dex, as a row."""

    user: Annotated[str, k.ADDRESS("account", key=True)]
    dex: Annotated[str, k.WORD("dex name; `native` for the native dex")]
    margin_summary: Annotated[MarginSummary, k.NESTED("all positions")]
    cross_margin_summary: Annotated[MarginSummary, k.NESTED("cross positions", prefix="cross_")]
    # Recordings of 2023 lack it.
    time: Annotated[int, k.TIME("time of the state", lacked=True)]
    cross_maintenance_margin_used: Annotated[
        Text, k.USD("maintenance margin of the cross positions", beyond=1)
    ] = UNSET


class PositionRow(Record, kw_only=True):
    """One position of one user, as a row."""

    user: Annotated[str, k.ADDRESS("account", key=True)]
    dex: Annotated[str, k.WORD("dex name; `native` for the native dex")]
    type: Annotated[str, k.WORD("position mode, e.g. oneWay")]
    position: Annotated[Position, k.NESTED("the position", key=True)]
    # Recordings of 2023 lack it.
    time: Annotated[int, k.TIME("time of the state", lacked=True)]


class FailedRow(Record, kw_only=True):
    """An account without an available state, as a row."""

    user: Annotated[str, k.ADDRESS("account", key=True)]


class LendPosition(Record, kw_only=True):
    """One side of a borrow/lend position."""

    basis: Annotated[str, k.AMOUNT("amount without interest")]
    value: Annotated[str, k.AMOUNT("amount with interest")]


class TokenState(Record, kw_only=True):
    """A user's borrow/lend position in one token.

    The specification does not show its fields; they come from public documentation
    and recorded answers.
    """

    borrow: Annotated[LendPosition, k.NESTED("borrowed", prefix="borrow_")]
    supply: Annotated[LendPosition, k.NESTED("supplied", prefix="supply_")]


class BorrowLend(Record, kw_only=True):
    """A user's borrow/lend state."""

    token_to_state: Annotated[list[tuple[int, TokenState]], k.ROWS("pairs of token and state")]
    health: Annotated[str, k.WORD("healthy, atRisk, marketLiquidatable, backstopLiquidatable")]
    health_factor: Annotated[str | None, k.RATE("missing when there is no position")]


class LendInterest(Record, kw_only=True):
    """The interest of a user's loans and deposits in one token at one moment."""

    time: Annotated[int, k.TIME("time of the interest", key=True)]
    token: Annotated[str, k.COIN("token", key=True)]
    borrow: Annotated[str, k.AMOUNT("interest that the user owes for what it borrowed")]
    supply: Annotated[str, k.AMOUNT("interest that the user earned with what it supplied")]


class TokenRow(Record, kw_only=True):
    """A user's borrow/lend position in one token, as a row."""

    token_index: Annotated[int, k.ID("index of the token", key=True)]
    state: Annotated[TokenState, k.NESTED("the position")]


class VaultEquity(Record, kw_only=True):
    """The equity of a user in one vault."""

    vault_address: Annotated[str, k.ADDRESS("vault")]
    equity: Annotated[str, k.USD("value of the user's share")]
    locked_until_timestamp: Annotated[Whole, k.TIME("time from which it may be withdrawn")] = UNSET


class PortfolioState(Record, kw_only=True):
    """The capital of an account: perps, spot balances and mode."""

    clearinghouse_state: Annotated[ClearinghouseState, k.ROWS("its perp account on a dex")]
    spot_clearinghouse_state: Annotated[SpotState, k.ROWS("its spot balances")]
    user_abstraction: _Abstraction


class PortfolioStateByDex(Record, kw_only=True):
    """The answer of `portfolioState` for ALL_DEXES."""

    clearinghouse_state: Annotated[
        dict[str, ClearinghouseState], k.ROWS("dex -> perp account; the native dex is `native`")
    ]
    spot_clearinghouse_state: Annotated[SpotState, k.ROWS("its spot balances")]
    user_abstraction: _Abstraction


class ModeRow(Record, kw_only=True):
    """The mode of an account, as a row."""

    user: Annotated[str, k.ADDRESS("account", key=True)]
    user_abstraction: _Abstraction


class SubAccount(Record, kw_only=True):
    """A sub-account with its state."""

    name: Annotated[str, k.TEXT("name of the sub-account")]
    sub_account_user: Annotated[str, k.ADDRESS("sub-account")]
    master: Annotated[str, k.ADDRESS("account that owns the sub-account")]
    clearinghouse_state: Annotated[
        ClearinghouseState | UnsetType,
        k.ROWS("its perp account; unified ones have one for each dex"),
    ] = UNSET
    dex_to_clearinghouse_state: Annotated[
        list[tuple[str, ClearinghouseState]] | UnsetType, k.ROWS("dex -> perp account, if unified")
    ] = UNSET
    spot_state: Annotated[SpotState, k.ROWS("its spot balances")]


class SubAccountRow(Record, kw_only=True):
    """A sub-account, as a row."""

    name: Annotated[str, k.TEXT("name of the sub-account")]
    sub_account_user: Annotated[str, k.ADDRESS("sub-account")]
    master: Annotated[str, k.ADDRESS("account that owns the sub-account")]
    account_value: Annotated[
        Text, k.USD("value on the native dex; a unified account has its collateral in spot_usdc")
    ] = UNSET
    spot_usdc: Annotated[Text, k.AMOUNT("USDC in the spot wallet", unit="USDC")] = UNSET


class UserRole(Record, kw_only=True):
    """The role of an address."""

    role: Annotated[str, k.WORD("user, vault, agent, subAccount or missing")]
    data: Annotated[object | UnsetType, k.NESTED("account of the agent or sub-account")] = UNSET


class UserFees(Record, kw_only=True):
    """The fee rates of a user."""

    daily_user_vlm: Annotated[list[object], k.NESTED("volume of each of the last days")]
    fee_schedule: Annotated[object, k.NESTED("fee rates of the exchange")]
    user_cross_rate: Annotated[str, k.RATE("taker fee on perps")]
    user_add_rate: Annotated[str, k.RATE("maker fee on perps; negative: the user receives it")]
    user_spot_cross_rate: Annotated[str, k.RATE("taker fee on spot")]
    user_spot_add_rate: Annotated[str, k.RATE("maker fee on spot; negative: the user receives it")]
    active_referral_discount: Annotated[str, k.RATE("discount by referral")]
    trial: Annotated[object | None, k.NESTED("fee trial; missing if there is none")]
    fee_trial_escrow: Annotated[Text, k.AMOUNT("fees held back by a trial")] = UNSET
    next_trial_available_timestamp: Annotated[
        Whole | None, k.TIME("time from which the next trial may begin")
    ] = UNSET
    staking_link: Annotated[object | None, k.NESTED("linked staking account")] = None
    active_staking_discount: Annotated[object | None, k.NESTED("discount by staking")] = None


class UserRateLimit(Record, kw_only=True):
    """The number of requests that an address can send to the exchange."""

    cum_vlm: Annotated[str, k.USD("volume traded so far")]
    n_requests_used: Annotated[int, k.COUNT("number of requests sent")]
    n_requests_cap: Annotated[int, k.COUNT("number of requests allowed")]
    n_requests_surplus: Annotated[Whole, k.COUNT("additional requests that the user bought")] = (
        UNSET
    )


class Portfolio(Record, kw_only=True):
    """The history of an account in one period."""

    account_value_history: Annotated[list[tuple[int, str]], k.ROWS("pairs of time and value")]
    pnl_history: Annotated[list[tuple[int, str]], k.ROWS("pairs of time and PnL in the period")]
    vlm: Annotated[str, k.USD("volume traded in the period")]


class PortfolioRow(Record, kw_only=True):
    """The value and PnL of an account at one moment of one period, as a row."""

    period: Annotated[str, k.WORD("day, week, month or allTime; perpDay and so on: perps only")]
    time: Annotated[int, k.TIME("time of the values")]
    account_value: Annotated[str, k.USD("account value")]
    pnl: Annotated[str | None, k.USD("PnL since the period began")]
    vlm: Annotated[str, k.USD("volume traded in the whole period")]


class VaultFollower(Record, kw_only=True):
    """The share of one account in a vault."""

    user: Annotated[str, k.ADDRESS("account; the word leader for the leader of the vault")]
    vault_equity: Annotated[str, k.USD("value of the share")]
    pnl: Annotated[str, k.USD("gain of the present share; negative: a loss")]
    all_time_pnl: Annotated[str, k.USD("gain since the first deposit, with what was paid out")]
    days_following: Annotated[int, k.COUNT("days since the first deposit")]
    vault_entry_time: Annotated[int, k.TIME("time of the first deposit")]
    lockup_until: Annotated[int, k.TIME("time from which it may be withdrawn")]


class VaultDetails(Record, kw_only=True):
    """A vault, its history and its followers."""

    name: Annotated[str, k.TEXT("name of the vault")]
    vault_address: Annotated[str, k.ADDRESS("vault", key=True)]
    leader: Annotated[str, k.ADDRESS("account that trades the money of the vault")]
    description: Annotated[str, k.TEXT("text of the leader")]
    portfolio: Annotated[list[tuple[str, Portfolio]], k.ROWS("the history by period")]
    apr: Annotated[float, k.RATE("return of the last month as a rate per year, not compounded")]
    follower_state: Annotated[
        VaultFollower | None, k.NESTED("share of the requested account", prefix="follower_")
    ]
    leader_fraction: Annotated[float, k.RATE("share of the vault that belongs to the leader")]
    leader_commission: Annotated[float, k.RATE("share of a follower's gain that the leader gets")]
    followers: Annotated[list[VaultFollower], k.ROWS("the largest shares, at most 100")]
    max_distributable: Annotated[float, k.USD("amount that may be paid out to all followers")]
    max_withdrawable: Annotated[float, k.USD("amount that may be withdrawn")]
    is_closed: Annotated[bool, k.FLAG("whether the vault is closed")]
    relationship: Annotated[object, k.NESTED("the parent or the children of the vault")]
    allow_deposits: Annotated[bool, k.FLAG("whether the vault takes deposits")]
    always_close_on_withdraw: Annotated[
        bool, k.FLAG("whether each withdrawal closes a part of the positions")
    ]


class ApiUsage(Record, kw_only=True, rename=None):
    """What a key has used on a day; its names are snake case on the wire."""

    day: Annotated[str, k.TEXT("day in UTC, such as 2026-03-01", key=True)]
    request_type: Annotated[str, k.TEXT("type of the requests", key=True)]
    total_requests: Annotated[int, k.COUNT("number of requests")]
    tokens_consumed: Annotated[float, k.AMOUNT("tokens of the month that they took", unit="tokens")]
