"""Ledger updates and funding payments. Specification, "Non-funding ledger update", "Funding row".

`DELTA_FIELDS` lists the fields of each type of delta. The specification does not show which fields
a type has; they come from public documentation and recorded answers.
"""

from typing import Annotated, Final

from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Flag, Record, Text, Whole


class FundingDelta(Record, kw_only=True):
    """The amount and the reason of one funding payment."""

    type: Annotated[str, k.WORD("always funding")]
    coin: Annotated[str, k.COIN("name of the market", key=True)]
    usdc: Annotated[str, k.USD("amount received; negative if paid", key=True)]
    szi: Annotated[str, k.SIZE("position at funding time; negative: short")]
    funding_rate: Annotated[str, k.RATE("funding rate applied; positive: longs pay")]
    n_samples: Annotated[
        Whole | None, k.COUNT("number of payments in the row; missing: one", beyond=5)
    ] = UNSET


class FundingRow(Record, kw_only=True):
    """One position's funding payment of one hour."""

    # Funding rows of a single user lack it.
    user: Annotated[
        str, k.ADDRESS("account that pays or receives; see the sign of `usdc`", lacked=True)
    ]
    time: Annotated[int, k.TIME("time of the funding payment", key=True)]
    hash: Annotated[str, k.TEXT("always the zero hash")]
    delta: Annotated[FundingDelta, k.NESTED("the payment", key=True)]


class LiquidatedPosition(Record, kw_only=True):
    """A position that a liquidation took."""

    coin: Annotated[str, k.COIN("name of the market")]
    szi: Annotated[str, k.SIZE("position size; negative: short")]


class LedgerDelta(Record, kw_only=True):
    """The change of one ledger update; its fields depend on its type."""

    type: Annotated[str, k.WORD("type of the update", key=True)]
    amount: Annotated[Text, k.AMOUNT("amount; type and parties show its direction")] = UNSET
    token: Annotated[Text, k.COIN("token symbol")] = UNSET
    usdc: Annotated[Text, k.USD("amount in USDC, if the row has no `amount`")] = UNSET
    usdc_value: Annotated[Text, k.USD("value in USD")] = UNSET
    user: Annotated[Text, k.ADDRESS("sender or source")] = UNSET
    destination: Annotated[Text, k.ADDRESS("destination address")] = UNSET
    destination_dex: Annotated[Text, k.WORD("destination dex; empty: native perps, or spot")] = (
        UNSET
    )
    source_dex: Annotated[Text, k.WORD("source dex; empty: native perps, or spot")] = UNSET
    fee: Annotated[Text, k.FEE("fee")] = UNSET
    fee_token: Annotated[Text, k.COIN("fee token; may be empty")] = UNSET
    native_token_fee: Annotated[Text, k.NATIVE("native token fee")] = UNSET
    nonce: Annotated[Whole | None, k.COUNT("nonce")] = UNSET
    to_perp: Annotated[Flag, k.FLAG("whether the transfer is from spot to perps")] = UNSET
    liquidated_ntl_pos: Annotated[Text, k.USD("liquidated notional")] = UNSET
    account_value: Annotated[Text, k.USD("account value at liquidation; may be negative")] = UNSET
    leverage_type: Annotated[Text, k.WORD("Cross or Isolated")] = UNSET
    liquidated_positions: Annotated[
        list[LiquidatedPosition] | UnsetType, k.NESTED("the liquidated positions")
    ] = UNSET
    vault: Annotated[Text, k.ADDRESS("vault")] = UNSET
    requested_usd: Annotated[Text, k.USD("amount requested from a vault")] = UNSET
    commission: Annotated[Text, k.USD("commission of the vault's leader")] = UNSET
    closing_cost: Annotated[Text, k.USD("cost of closing the vault's positions")] = UNSET
    basis: Annotated[Text, k.USD("cost basis of the withdrawn amount")] = UNSET
    net_withdrawn_usd: Annotated[Text, k.USD("amount received from the vault")] = UNSET
    is_deposit: Annotated[Flag, k.FLAG("whether the transfer is into staking")] = UNSET
    operation: Annotated[Text, k.WORD("supply, withdraw, repay or borrow")] = UNSET
    interest_amount: Annotated[Text, k.AMOUNT("interest")] = UNSET
    dex: Annotated[Text, k.WORD("dex")] = UNSET


class LedgerUpdate(Record, kw_only=True):
    """One entry of a user's ledger."""

    time: Annotated[int, k.TIME("time of the update", key=True)]
    hash: Annotated[str, k.TEXT("transaction hash")]
    delta: Annotated[LedgerDelta, k.NESTED("what it moved", key=True)]


_TRANSFER = ("usdc", "user", "destination")
_WITHDRAWAL = ("requestedUsd", "commission", "closingCost", "basis", "netWithdrawnUsd")
_TOKEN_TRANSFER = ("user", "destination", "token", "amount", "usdcValue", "fee", "nativeTokenFee")

DELTA_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "deposit": ("usdc",),
    "withdraw": ("usdc", "nonce", "fee"),
    "accountClassTransfer": ("usdc", "toPerp"),
    "internalTransfer": (*_TRANSFER, "fee"),
    "subAccountTransfer": _TRANSFER,
    "spotTransfer": (*_TOKEN_TRANSFER, "nonce", "feeToken"),
    "send": (*_TOKEN_TRANSFER, "nonce", "feeToken", "sourceDex", "destinationDex"),
    "liquidation": ("liquidatedNtlPos", "accountValue", "leverageType", "liquidatedPositions"),
    "vaultCreate": ("vault", "usdc", "fee"),
    "vaultDeposit": ("vault", "usdc"),
    "vaultDistribution": ("vault", "usdc"),
    "vaultWithdraw": ("vault", "user", *_WITHDRAWAL),
    "vaultLeaderCommission": ("user", "usdc"),
    "rewardsClaim": ("token", "amount"),
    "deployGasAuction": ("token", "amount"),
    "spotGenesis": ("token", "amount"),
    "cStakingTransfer": ("token", "amount", "isDeposit"),
    "borrowLend": ("token", "operation", "amount", "interestAmount"),
    "activateDexAbstraction": ("dex", "token", "amount"),
    "accountActivationGas": ("token", "amount"),
    "perpDexClassTransfer": ("token", "amount", "dex", "toPerp"),
    "borrowLendBackstopLiquidation": (),  # its fields are unknown: keep all of them
}
"""Type of delta -> the fields it has besides ``type``, in their wire names."""
