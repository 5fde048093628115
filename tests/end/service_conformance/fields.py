"""The fields of the specification's records, and what each may hold on the wire.

Typed off `specification.md` ("Resources and their fields") and `clarifications.md`, not the code.
"""

import re
from collections.abc import Callable
from typing import Any

ADDRESS = re.compile(r"0x[0-9a-f]{40}")
DECIMAL = re.compile(r"-?\d+(\.\d+)?")
NOBODY = "0x" + "0" * 40
DAY = 86_400_000


def decimal(value: Any) -> bool:
    return isinstance(value, str) and DECIMAL.fullmatch(value) is not None


def integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def string(value: Any) -> bool:
    return isinstance(value, str)


def boolean(value: Any) -> bool:
    return isinstance(value, bool)


def array(value: Any) -> bool:
    return isinstance(value, list)


def mapping(value: Any) -> bool:
    return isinstance(value, dict)


def address(value: Any) -> bool:
    return isinstance(value, str) and ADDRESS.fullmatch(value) is not None


Check = Callable[[Any], bool]


def nullable(check: Check) -> Check:
    return lambda value: value is None or check(value)


def hexadecimal(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]+", value) is not None


REQUIRED, OPTIONAL = True, False
Fields = dict[str, tuple[Check, bool]]

FILL: Fields = {
    "coin": (string, REQUIRED),
    "px": (decimal, REQUIRED),
    "sz": (decimal, REQUIRED),
    "side": (lambda value: value in ("A", "B"), REQUIRED),
    "time": (integer, REQUIRED),
    "startPosition": (decimal, REQUIRED),
    "dir": (string, REQUIRED),
    "closedPnl": (decimal, REQUIRED),
    "hash": (hexadecimal, REQUIRED),
    "oid": (integer, REQUIRED),
    "crossed": (boolean, REQUIRED),
    "fee": (decimal, REQUIRED),
    "tid": (integer, REQUIRED),
    "cloid": (hexadecimal, OPTIONAL),
    "builderFee": (decimal, OPTIONAL),
    "deployerFee": (decimal, OPTIONAL),
    "priorityGas": (decimal, OPTIONAL),
    "feeToken": (string, REQUIRED),
    "twapId": (nullable(integer), REQUIRED),
    "txIndex": (integer, REQUIRED),
}
LATEST_FILL: Fields = {**FILL, "builder": (nullable(address), OPTIONAL)}
TIMED_FILL: Fields = {**FILL, "venue": (string, OPTIONAL)}
APPROVED_FILL: Fields = {**LATEST_FILL, "user": (address, REQUIRED)}
ORDER: Fields = {
    "coin": (string, REQUIRED),
    "side": (lambda value: value in ("A", "B"), REQUIRED),
    "limitPx": (decimal, REQUIRED),
    "sz": (decimal, REQUIRED),
    "oid": (integer, REQUIRED),
    "timestamp": (integer, REQUIRED),
    "triggerCondition": (string, REQUIRED),
    "isTrigger": (boolean, REQUIRED),
    "triggerPx": (decimal, REQUIRED),
    "children": (array, REQUIRED),
    "isPositionTpsl": (boolean, REQUIRED),
    "reduceOnly": (boolean, REQUIRED),
    "orderType": (string, REQUIRED),
    "origSz": (decimal, REQUIRED),
    "tif": (nullable(string), OPTIONAL),
    "cloid": (nullable(hexadecimal), OPTIONAL),
}
STATUS: Fields = {
    "builderFee": (integer, OPTIONAL),
    "txIndex": (integer, REQUIRED),
    "status": (string, REQUIRED),
    "statusTimestamp": (integer, REQUIRED),
    "order": (mapping, REQUIRED),
}
USER_STATUS: Fields = {**STATUS, "builder": (address, OPTIONAL)}
BUILDER_STATUS: Fields = {**STATUS, "user": (address, REQUIRED)}
FUNDING: Fields = {
    "user": (address, REQUIRED),
    "time": (integer, REQUIRED),
    "hash": (lambda value: value == "0x" + "0" * 64, REQUIRED),
    "delta": (mapping, REQUIRED),
}
FUNDING_DELTA: Fields = {
    "type": (lambda value: value == "funding", REQUIRED),
    "coin": (string, REQUIRED),
    "usdc": (decimal, REQUIRED),
    "szi": (decimal, REQUIRED),
    "fundingRate": (decimal, REQUIRED),
}
AUCTION: Fields = {
    "startTimeSeconds": (integer, REQUIRED),
    "durationSeconds": (integer, REQUIRED),
    "startGas": (decimal, REQUIRED),
    "currentGas": (nullable(decimal), REQUIRED),
    "endGas": (nullable(decimal), REQUIRED),
}
SLIPPAGE: Fields = {
    "timestamp": (integer, REQUIRED),
    "dex": (string, REQUIRED),
    "coin": (string, REQUIRED),
    "halfSpreadBps": (number, REQUIRED),
    "amountUsd": (number, REQUIRED),
    "buySlippageBps": (nullable(number), REQUIRED),
    "sellSlippageBps": (nullable(number), REQUIRED),
}
ASSET: Fields = {
    "name": (string, REQUIRED),
    "szDecimals": (integer, REQUIRED),
    "maxLeverage": (integer, REQUIRED),
    "onlyIsolated": (boolean, REQUIRED),
    "marginTableId": (integer, OPTIONAL),
    "isDelisted": (boolean, OPTIONAL),
    "marginMode": (string, OPTIONAL),
}
CONTEXT: Fields = {
    "funding": (decimal, REQUIRED),
    "openInterest": (decimal, REQUIRED),
    "prevDayPx": (decimal, REQUIRED),
    "dayNtlVlm": (decimal, REQUIRED),
    "premium": (nullable(decimal), REQUIRED),
    "oraclePx": (decimal, REQUIRED),
    "markPx": (decimal, REQUIRED),
    "midPx": (nullable(decimal), REQUIRED),
    "impactPxs": (nullable(array), REQUIRED),
    "dayBaseVlm": (decimal, OPTIONAL),
}
MARGIN: Fields = {
    "accountValue": (decimal, REQUIRED),
    "totalMarginUsed": (decimal, REQUIRED),
    "totalNtlPos": (decimal, REQUIRED),
    "totalRawUsd": (decimal, REQUIRED),
    "withdrawable": (decimal, REQUIRED),
}
POSITION: Fields = {
    "coin": (string, REQUIRED),
    "entryPx": (decimal, REQUIRED),
    "leverage": (mapping, REQUIRED),
    "liquidationPx": (nullable(decimal), REQUIRED),
    "marginUsed": (decimal, REQUIRED),
    "maxTradeSzs": (lambda value: len(value) == 2 and all(map(decimal, value)), REQUIRED),
    "positionValue": (decimal, REQUIRED),
    "returnOnEquity": (decimal, REQUIRED),
    "szi": (decimal, REQUIRED),
    "unrealizedPnl": (decimal, REQUIRED),
}
DELEGATION: Fields = {
    "validator": (address, REQUIRED),
    "amount": (decimal, REQUIRED),
    "lockedUntilTimestamp": (integer, REQUIRED),
}
WEEK: Fields = {
    "week": (number, REQUIRED),
    "netApr": (number, REQUIRED),
    "grossApr": (number, REQUIRED),
    "totalDelegatorRewards": (decimal, REQUIRED),
}
LIMITS: Fields = {
    "totalOiCap": (decimal, REQUIRED),
    "oiSzCapPerPerp": (decimal, REQUIRED),
    "maxTransferNtl": (decimal, REQUIRED),
    "coinToOiCap": (
        lambda value: all(string(coin) and decimal(cap) for coin, cap in value),
        REQUIRED,
    ),
}
METADATA: Fields = {"snapshot_id": (string, REQUIRED), "timestamp": (integer, REQUIRED)}
LEDGER: Fields = {
    "time": (integer, REQUIRED),
    "hash": (hexadecimal, REQUIRED),
    "delta": (mapping, REQUIRED),
}
DEPTH: Fields = {"timestampMs": (integer, REQUIRED), "data": (array, REQUIRED)}
MARKET: Fields = {
    "coin": (string, REQUIRED),
    "dex": (string, REQUIRED),
    "levels": (array, REQUIRED),
}
LEVEL: Fields = {
    "bps": (integer, REQUIRED),
    "bidDepthUsd": (number, REQUIRED),
    "askDepthUsd": (number, REQUIRED),
}
LOAN: Fields = {
    "tokenToState": (array, REQUIRED),
    "health": (
        lambda v: v in ("healthy", "atRisk", "marketLiquidatable", "backstopLiquidatable"),
        REQUIRED,
    ),
    "healthFactor": (nullable(decimal), REQUIRED),
}


def conforms(rows: list[Any], fields: Fields) -> None:
    """Every row has the fields, of the right type, and no other."""
    assert rows
    required = {name for name, (_, must) in fields.items() if must}
    for row in rows:
        assert required <= row.keys() <= fields.keys(), row
        for name, value in row.items():
            assert fields[name][0](value), (name, value)
