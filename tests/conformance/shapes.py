"""The tables of the specification, field by field, and a check of values.

The words of a table row describe a value: its kind, then other allowed values.
"""

import re

Shape = dict[str, str]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_TEXTS = {
    "decimal": re.compile(r"-?\d+(\.\d+)?"),
    "address": re.compile(r"0x[0-9a-f]{40}"),
    "hash": re.compile(r"0x[0-9a-f]{64}"),
    "hex": re.compile(r"0x[0-9a-f]+"),
}


def is_kind(kind, value):
    """Return whether a value fits one word of the tables; a flag is not a number."""
    if kind in _TYPES:
        return type(value) in _TYPES[kind]
    if kind in _TEXTS:
        return isinstance(value, str) and bool(_TEXTS[kind].fullmatch(value))
    return value in kind.split("|")


def faults(rows, field, words):
    """Yield what is wrong with one field of the rows; its words are e.g. ``"decimal, optional"``.

    ``optional`` may be absent, ``null`` may be null; ``seen`` says that every branch that the
    words allow has to occur among the rows.
    """
    kind, *more = words.split(", ")
    values = [row[field] for row in rows if field in row]
    absent = len(rows) - len(values)
    nulls = values.count(None)
    wrong = [v for v in values if not is_kind(kind, v) and not (v is None and "null" in more)]
    if wrong:
        yield f"{field} should be {words}: {wrong[:3]}"
    if not values or ("seen" in more and nulls == len(values)):
        yield f"{field} never occurs"
    if absent and "optional" not in more:
        yield f"{field} is absent from {absent} rows"
    if "seen" in more and (("null" in more and not nulls) or ("optional" in more and not absent)):
        yield f"{field} is always there"


def check_values(rows, shape):
    """Check every field of a table, in all rows."""
    assert [f for field, words in shape.items() for f in faults(rows, field, words)] == []


def check_rows(rows, shape):
    """Check every field of a table, and that rows have no others but those of `BEYOND`."""
    check_values(rows, shape)
    other = {name for row in rows for name in row} - shape.keys() - BEYOND
    assert not other, f"not in the specification: {other}"


BEYOND = frozenset(
    {
        *("liquidation", "feeTrialEscrow", "liquidationMarkPx", "nSamples", "collateralToken"),
        *("marginTables", "marginTableId", "isDelisted", "marginMode", "growthMode"),
        *("lastGrowthModeChangeTime", "deployerFeeScale", "lastFeeScaleChangeTime"),
        *("crossMaintenanceMarginUsed", "maxLeverage", "cumFunding", "rawUsd", "withdrawable"),
    }
)
"""Fields that the live service is known to add. docs/live_service.md, sections 1, 2, 4 to 6."""


FILL: Shape = {
    "coin": "string",
    "px": "decimal",
    "sz": "decimal",
    "side": "A|B",
    "time": "int",
    "startPosition": "decimal",
    "dir": "string",
    "closedPnl": "decimal",
    "hash": "hash",
    "oid": "int",
    "crossed": "boolean",
    "fee": "decimal",
    "tid": "int",
    "cloid": "hex, optional, seen",
    "builderFee": "decimal, optional, seen",
    "deployerFee": "decimal, optional, seen",
    "priorityGas": "decimal, optional, seen",
    "feeToken": "string",
    "twapId": "int, null, seen",
    "txIndex": "int",
}
LATEST_FILL: Shape = FILL | {"builder": "address, optional, null"}
FILL_BY_TIME: Shape = FILL | {"venue": "string, optional, seen"}
APPROVED_FILL: Shape = {
    **{name: words.replace(", optional, seen", ", optional") for name, words in FILL.items()},
    "builder": "address, null, seen",
    "user": "address",
}

ORDER: Shape = {
    "coin": "string",
    "side": "A|B",
    "limitPx": "decimal",
    "sz": "decimal",
    "oid": "int",
    "timestamp": "int",
    "triggerCondition": "string",
    "isTrigger": "boolean",
    "triggerPx": "decimal",
    "children": "array",
    "isPositionTpsl": "boolean",
    "reduceOnly": "boolean",
    "orderType": "string",
    "origSz": "decimal",
    "tif": "string, optional, null",
    "cloid": "hex, optional, null",
}
ORDER_STATUS: Shape = {
    "txIndex": "int",
    "status": "string",
    "statusTimestamp": "int",
    "order": "object",
}
HISTORICAL: Shape = ORDER_STATUS | {
    "builder": "address, optional, seen",
    "builderFee": "int, optional, seen",
}
BUILDERS: Shape = ORDER_STATUS | {"user": "address", "builderFee": "int, optional"}
FUNDING: Shape = {"user": "address", "time": "int", "hash": "hash", "delta": "object"}
FUNDING_DELTA: Shape = {
    "type": "funding",
    "coin": "string",
    "usdc": "decimal",
    "szi": "decimal",
    "fundingRate": "decimal",
}

SPOT_AUCTION: Shape = {
    "startTimeSeconds": "int",
    "durationSeconds": "int",
    "startGas": "decimal",
    "currentGas": "decimal",
    "endGas": "decimal, null",
}
PERP_AUCTION: Shape = SPOT_AUCTION | {"currentGas": "decimal, null"}

DEPTH: Shape = {"timestampMs": "int", "data": "array"}
MARKET: Shape = {"coin": "string", "dex": "string", "levels": "array"}
LEVEL: Shape = {"bps": "int", "bidDepthUsd": "number", "askDepthUsd": "number"}

SLIPPAGE: Shape = {
    "timestamp": "int",
    "dex": "string",
    "coin": "string",
    "halfSpreadBps": "number",
    "amountUsd": "number",
    "buySlippageBps": "number, null, seen",
    "sellSlippageBps": "number, null, seen",
}

PERP: Shape = {
    "name": "string",
    "szDecimals": "int",
    "maxLeverage": "int",
    "onlyIsolated": "boolean",
}
CONTEXT: Shape = {
    "funding": "decimal",
    "openInterest": "decimal",
    "prevDayPx": "decimal",
    "dayNtlVlm": "decimal",
    "premium": "decimal, null, seen",
    "oraclePx": "decimal",
    "markPx": "decimal",
    "midPx": "decimal, null, seen",
    "impactPxs": "array, null, seen",
    "dayBaseVlm": "decimal, optional",
}
LIMITS: Shape = {
    "totalOiCap": "decimal",
    "oiSzCapPerPerp": "decimal",
    "maxTransferNtl": "decimal",
    "coinToOiCap": "array",
}

STATE: Shape = {
    "marginSummary": "object",
    "crossMarginSummary": "object",
    "assetPositions": "array",
    "time": "int",
}
MARGIN: Shape = {
    "accountValue": "decimal",
    "totalMarginUsed": "decimal",
    "totalNtlPos": "decimal",
    "totalRawUsd": "decimal",
    "withdrawable": "decimal",
}
POSITION: Shape = {
    "coin": "string",
    "entryPx": "decimal",
    "leverage": "object",
    "liquidationPx": "decimal, null",
    "marginUsed": "decimal",
    "maxTradeSzs": "array",
    "positionValue": "decimal",
    "returnOnEquity": "decimal",
    "szi": "decimal",
    "unrealizedPnl": "decimal",
}

LENDING: Shape = {
    "tokenToState": "array",
    "health": "healthy|atRisk|marketLiquidatable|backstopLiquidatable",
    "healthFactor": "decimal, null, seen",
}
DELEGATION: Shape = {"validator": "address", "amount": "decimal", "lockedUntilTimestamp": "int"}
WEEK: Shape = {
    "week": "number",
    "netApr": "number",
    "grossApr": "number",
    "totalDelegatorRewards": "decimal",
}

UPDATE: Shape = {"time": "int", "hash": "hash", "delta": "object"}
DELTA: Shape = {
    "type": "string",
    "amount": "decimal, optional, seen",
    "token": "string, optional, seen",
    "usdc": "decimal, optional, seen",
    "usdcValue": "decimal, optional, seen",
    "user": "address, optional, seen",
    "destination": "address, optional, seen",
    "destinationDex": "string, optional, seen",
    "sourceDex": "string, optional, seen",
    "fee": "decimal, optional, seen",
    "feeToken": "string, optional, seen",
    "nativeTokenFee": "decimal, optional, seen",
    "nonce": "int, optional, null",
}
DELTA_FIELDS = {
    "deposit": "usdc",
    "withdraw": "usdc nonce fee",
    "accountClassTransfer": "usdc toPerp",
    "internalTransfer": "usdc user destination fee",
    "subAccountTransfer": "usdc user destination",
    "spotTransfer": "token amount usdcValue user destination fee nativeTokenFee nonce feeToken",
    "send": "user destination sourceDex destinationDex token amount usdcValue fee nativeTokenFee "
    "nonce feeToken",
    "liquidation": "liquidatedNtlPos accountValue leverageType liquidatedPositions",
    "vaultCreate": "vault usdc fee",
    "vaultDeposit": "vault usdc",
    "vaultDistribution": "vault usdc",
    "vaultWithdraw": "vault user requestedUsd commission closingCost basis netWithdrawnUsd",
    "vaultLeaderCommission": "user usdc",
    "rewardsClaim": "token amount",
    "deployGasAuction": "token amount",
    "spotGenesis": "token amount",
    "cStakingTransfer": "token amount isDeposit",
    "borrowLend": "token operation amount interestAmount",
    "activateDexAbstraction": "dex token amount",
    "accountActivationGas": "token amount",
    "perpDexClassTransfer": "token amount dex toPerp",
}

DELTA_VALUES: dict[str, Shape] = {
    "accountClassTransfer": {"toPerp": "boolean"},
    "perpDexClassTransfer": {"toPerp": "boolean", "dex": "string"},
    "cStakingTransfer": {"isDeposit": "boolean"},
    "liquidation": {
        "liquidatedNtlPos": "decimal",
        "accountValue": "decimal",
        "leverageType": "Cross|Isolated",
        "liquidatedPositions": "array",
    },
    "vaultCreate": {"vault": "address"},
    "vaultWithdraw": dict.fromkeys(
        ("requestedUsd", "commission", "closingCost", "basis", "netWithdrawnUsd"), "decimal"
    ),
    "borrowLend": {"operation": "supply|withdraw|repay|borrow", "interestAmount": "decimal"},
    "activateDexAbstraction": {"dex": "string"},
}
"""The values of the fields that only some types have."""

SNAPSHOT_METADATA: Shape = {"snapshot_id": "string", "timestamp": "int"}
ACCOUNT_TUPLE: Shape = {
    "account_value": "number",
    "total_long_notional": "number",
    "total_short_notional": "number",
    "is_unified": "boolean",
    "account_mode": "int",
    "pm_ratio": "number, optional, seen",
    "pm_avail_by_branch": "array, optional, seen",
    "pm_total_account_value": "number, optional, seen",
}
TWAP_TUPLE: Shape = {
    "address": "address",
    "twap_id": "int",
    "asset": "string",
    "is_buy": "boolean",
    "total_sz": "number",
    "executed_sz": "number",
    "remaining_sz": "number",
    "executed_ntl": "number",
    "progress_pct": "number",
    "duration_secs": "int",
    "start_time_ms": "int",
    "reduce_only": "boolean",
    "randomize": "boolean",
    "next_slice_time": "string",
    "slice_number": "int",
    "market_name": "null",
    "market_readable": "null",
    "stop_px": "number, null, seen",
    "trigger_px": "number, null, seen",
    "trigger_above": "boolean, null, seen",
    "waiting": "boolean",
}
