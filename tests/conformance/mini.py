"""A small exchange written by hand, as JSON rows: every expected row is known.

The rows below are the expectations. `sources` puts them into the tables of the contract.
"""

import msgspec

from tests.conformance.rows import Row
from toolkit.contract import records, source_tables

SECOND = 1_000
QUARTER = 15 * 60 * SECOND
HOUR = 4 * QUARTER
DAY = 24 * HOUR
WEEK = 7 * DAY
NOW = 1_759_320_000_000  # Wednesday, 2025-10-01 12:00 UTC
MONDAY = 1_759_104_000_000  # 2025-09-29, the Monday of that week
START = NOW - 60 * DAY
ZERO_HASH = "0x" + 64 * "0"


def address(name):
    """Return an address that repeats hexadecimal letters."""
    return "0x" + (name * 40)[:40]


ALICE, BOB, CAROL, DAVE, ERIN = map(address, ["a1", "b2", "c3", "d4", "e5"])
FAILED, NOBODY = map(address, ["fa", "00"])
B1, B2 = map(address, ["1b", "2b"])
PAYERS = [f"0x{0xABC00 + i:040x}" for i in range(30)]
V1, V2 = map(address, ["1e", "2e"])

# Fills.

T = NOW - 20 * HOUR


def fill(tid, time, tx, **other):
    row = {
        "coin": "BTC",
        "px": "100.0",
        "sz": "1.0",
        "side": "B",
        "time": time,
        "startPosition": "0.0",
        "dir": "Open Long",
        "closedPnl": "0.0",
        "hash": f"0x{time:048x}{tx:016x}",
        "oid": 1000 + tid,
        "crossed": True,
        "fee": "0.1",
        "tid": tid,
        "feeToken": "USDC",
        "twapId": None,
        "txIndex": tx,
    }
    return row | other


ROUTED = {"builder": B1, "builderFee": "0.01", "cloid": "0x" + 32 * "c"}
PARTIAL = [  # fills of one crossing order, in two transactions of one block
    fill(1, T, 1, oid=10, fee="0.1", closedPnl="0.1", **ROUTED),
    fill(2, T, 1, oid=10, px="104.0", sz="3.0", startPosition="1.0", fee="0.2", **ROUTED)
    | {"closedPnl": "0.2"},
    fill(3, T, 2, oid=10, px="105.0", startPosition="4.0", fee="0.3", **ROUTED),
]
RESTING = [  # fills of one resting order, in two transactions
    fill(4, T, 3, oid=11, crossed=False, side="A", fee="-0.1"),
    fill(5, T, 3, oid=11, crossed=False, side="A", fee="-0.2", sz="2.0"),
    fill(6, T, 4, oid=11, crossed=False, side="A", fee="-0.5", sz="5.0"),
]
LATER = fill(7, T + 10, 0, oid=10)
TESLA = fill(8, T + 20, 0, coin="eqx:TSLA", deployerFee="0.05", builder=B2, builderFee="0.02")
OUTCOME_PMX = fill(9, T + 30, 0, coin="#1230", dir="Buy", venue="PMX")
OUTCOME_VALIDATORS = fill(10, T + 30, 1, coin="#90", dir="Buy")
OUTCOME_KX = fill(11, T + 40, 0, coin="#2070", dir="Sell", side="A", venue="KX")
SPOT = fill(12, T + 50, 0, coin="PURR/USDC", dir="Buy", feeToken="PURR", priorityGas="0.0003")
TWAP = fill(13, T + 60, 0, twapId=77)
ALICES = [*PARTIAL, *RESTING, LATER, TESLA]
ALICES += [OUTCOME_PMX, OUTCOME_VALIDATORS, OUTCOME_KX, SPOT, TWAP]

# Approvals: Bob approves B1 in [A, A+1000) and from A+2000 on, and B2 from A+500 on.

A = NOW - 12 * HOUR
APPROVALS = [
    source_tables.Approval(BOB, B1, A, 5, True),
    source_tables.Approval(CAROL, B1, A, 6, True),
    source_tables.Approval(BOB, B2, A + 500, 0, True),
    source_tables.Approval(BOB, B1, A + 1_000, 3, False),
    source_tables.Approval(BOB, B1, A + 2_000, 1, True),
    source_tables.Approval(ERIN, B2, NOW - 10 * HOUR, 0, True),
    source_tables.Approval(DAVE, B2, NOW - 6 * HOUR, 0, True),
    source_tables.Approval(DAVE, B2, NOW - 4 * HOUR, 0, False),
    *(source_tables.Approval(payer, B1, START, 0, True) for payer in PAYERS),
]
BEFORE = fill(21, A - 1, 0)
SAME_BLOCK_EARLIER = fill(22, A, 2)
SAME_BLOCK_LATER = fill(23, A, 9, builder=B1, builderFee="0.01")
BOTH = fill(24, A + 500, 7)
LAST_MOMENT = fill(25, A + 999, 0)
SAME_BLOCK_AS_REVOCATION = fill(26, A + 1_000, 1)
REVOKED = fill(27, A + 1_999, 0)
AGAIN = fill(28, A + 2_000, 2)
BOBS = [BEFORE, SAME_BLOCK_EARLIER, SAME_BLOCK_LATER, BOTH, LAST_MOMENT]
BOBS += [SAME_BLOCK_AS_REVOCATION, REVOKED, AGAIN]
ELSEWHERE = fill(31, A + 100, 0, builder=B2, builderFee="0.02")
LIQUIDATION = fill(32, A + 200, 0, dir="Liquidated Cross Long", side="A")
SUB_FILL = fill(33, A + 300, 0, twapId=78)
CAROLS = [ELSEWHERE, LIQUIDATION, SUB_FILL]
APPROVED_B1 = [
    (BOB, SAME_BLOCK_EARLIER),
    (BOB, SAME_BLOCK_LATER),
    (CAROL, ELSEWHERE),
    (CAROL, LIQUIDATION),
    (CAROL, SUB_FILL),
    (BOB, BOTH),
    (BOB, LAST_MOMENT),
    (BOB, AGAIN),
]
E = NOW - 9 * HOUR
ERINS = [
    fill(5_000 + i, E + i // 9, i % 9 // 3) for i in range(4_203)
]  # three fills per transaction
APPROVED_B2 = [(BOB, item) for item in BOBS[3:]] + [(ERIN, item) for item in ERINS]

# Funding: 30 accounts, 72 hours, and Dave, who approved on the hour and revoked on it.


def payment(user, time, coin, number):
    delta = {"type": "funding", "coin": coin, "usdc": f"{number % 7 - 3}.5"}
    delta |= {"szi": "-2.0", "fundingRate": "0.0000125"}
    return {"user": user, "time": time, "hash": ZERO_HASH, "delta": delta}


HOURS = [NOW - hours * HOUR for hours in range(72, 0, -1)]
PAYMENTS = [
    payment(user, time, coin, i)
    for time in HOURS
    for i, user in enumerate([*PAYERS, DAVE])
    for coin in ("BTC", "eqx:TSLA")[: 1 + i % 2]
]
APPROVED_PAYMENTS = [item for item in PAYMENTS if item["user"] != DAVE]
DAVES = [
    item
    for item in PAYMENTS
    if item["user"] == DAVE and item["time"] in (NOW - 6 * HOUR, NOW - 5 * HOUR)
]

# Orders.


def order(oid, **other):
    row = {
        "coin": "BTC",
        "side": "B",
        "limitPx": "100.0",
        "sz": "1.0",
        "oid": oid,
        "timestamp": T,
        "triggerCondition": "N/A",
        "isTrigger": False,
        "triggerPx": "0.0",
        "children": [],
        "isPositionTpsl": False,
        "reduceOnly": False,
        "orderType": "Limit",
        "origSz": "1.0",
        "tif": "Gtc",
        "cloid": None,
    }
    return row | other


def event(oid, time, tx, status, via="", **other):
    row: Row = {"builder": via, "builderFee": 5} if via else {}
    return {
        **row,
        "txIndex": tx,
        "status": status,
        "statusTimestamp": time,
        "order": order(oid, **other),
    }


TAKE_PROFIT = order(
    103,
    isTrigger=True,
    triggerPx="110.0",
    triggerCondition="Price above 110",
    orderType="Take Profit Market",
    reduceOnly=True,
    isPositionTpsl=True,
    tif=None,
)
EVENTS = [
    (ALICE, event(101, T, 1, "open", cloid="0x" + 32 * "d")),
    (ALICE, event(101, T + 10, 0, "canceled", cloid="0x" + 32 * "d")),
    (ALICE, event(102, T + 20, 0, "open", B1, children=[TAKE_PROFIT])),
    (BOB, event(104, T + 20, 0, "open", B1)),
    (ALICE, event(105, T + 20, 0, "iocCancelRejected", B1, tif="Ioc")),
    (ALICE, event(102, T + 30, 2, "filled", B1, sz="0.0")),
    (DAVE, event(107, T + 30, 1, "open", B2)),
    (BOB, event(106, T + 30, 3, "open", B2)),
]
MANY = [(CAROL, event(10_000 + i, T + i, i % 4, "open", tif="Alo")) for i in range(2_100)]

# The ledger.


def update(time, number, **delta):
    return {"time": time, "hash": f"0x{number:064x}", "delta": delta}


LEDGER = [
    update(T, 1, type="deposit", usdc="1000.0"),
    update(T + 10, 2, type="withdraw", usdc="5.0", nonce=7, fee="1.0"),
    update(T + 10, 3, type="accountClassTransfer", usdc="6.0", toPerp=False),
    update(T + 20, 4, type="rewardsClaim", token="HYPE", amount="0.5"),
]

# Market data.

FIRST_SAMPLE = NOW - 2_500 * QUARTER


def sample(i, amount=1_000.0, coin="BTC", dex="hyperliquid"):
    cost: float | None = None if i % 10 == 3 else 1.25
    return {
        "timestamp": FIRST_SAMPLE + i * QUARTER,
        "dex": dex,
        "coin": coin,
        "halfSpreadBps": 0.31,
        "amountUsd": amount,
        "buySlippageBps": cost,
        "sellSlippageBps": 2.5,
    }


SAMPLES = [sample(i) for i in range(2_501)]
LARGE_SAMPLES = [sample(i, 1_000_000.0) for i in range(4)]
TESLA_SAMPLES = [sample(i, 5_000.0, "eqx:TSLA", "eqx") for i in range(4)]
SIZES = [10, 25, 50, 100, 200, 500]


def market(coin, dex):
    levels = [{"bps": b, "bidDepthUsd": 10.5 * b, "askDepthUsd": 9.5 * b} for b in SIZES]
    return {"coin": coin, "dex": dex, "levels": levels}


DEPTH = {
    "timestampMs": NOW - 400,
    "data": [market("BTC", "hyperliquid"), market("ETH", "hyperliquid"), market("TSLA", "eqx")],
}


def perp(name, **other):
    row = {"name": name, "szDecimals": 5, "maxLeverage": 40, "onlyIsolated": False}
    return row | other


METAS = {
    "": {"universe": [perp("BTC"), perp("ETH", onlyIsolated=True)]},
    "eqx": {"universe": [perp("eqx:TSLA", szDecimals=3, maxLeverage=10)]},
}


def context(**other):
    row = {
        "funding": "0.0000125",
        "openInterest": "12.5",
        "prevDayPx": "99.0",
        "dayNtlVlm": "1000.0",
        "premium": "0.0001",
        "oraclePx": "100.0",
        "markPx": "100.1",
        "midPx": "100.05",
        "impactPxs": ["100.0", "100.1"],
        "dayBaseVlm": "10.0",
    }
    return row | other


CONTEXTS = {
    "": [context(), context(premium=None, midPx=None, impactPxs=None)],
    "eqx": [context(markPx="420.0")],
}
LIMITS = {
    "eqx": {
        "totalOiCap": "25000000.0",
        "oiSzCapPerPerp": "1000000.0",
        "maxTransferNtl": "5000000.0",
        "coinToOiCap": [["eqx:TSLA", "3000000.0"]],
    }
}
NOON = NOW // SECOND
AUCTIONS = [  # the spot auction has ended; a quarter of the perp auction has passed
    source_tables.Auction(
        "spot", NOON - 7 * 3_600, 86_400, "500.0", "100.0", NOON - 3_600, "400.0"
    ),
    source_tables.Auction("perp", NOON - 6 * 3_600, 86_400, "500.0", "100.0"),
]

# Accounts.


def summary(value):
    return {
        "accountValue": value,
        "totalMarginUsed": "1.0",
        "totalNtlPos": "2.0",
        "totalRawUsd": "3.0",
        "withdrawable": "4.0",
    }


def state(value, *positions):
    return {
        "marginSummary": summary(value),
        "crossMarginSummary": summary(value),
        "assetPositions": list(positions),
        "time": NOW,
    }


POSITION = {
    "type": "oneWay",
    "position": {
        "coin": "BTC",
        "entryPx": "100.0",
        "leverage": {"type": "cross", "value": 20},
        "liquidationPx": "50.0",
        "marginUsed": "1.0",
        "maxTradeSzs": ["1.0", "2.0"],
        "positionValue": "2.0",
        "returnOnEquity": "0.1",
        "szi": "-0.5",
        "unrealizedPnl": "0.25",
    },
}
STATES = {
    "": {ALICE: state("10.0", POSITION), BOB: state("20.0"), FAILED: state("1.0")},
    "eqx": {ALICE: state("11.0"), BOB: state("21.0"), FAILED: state("1.0")},
}
LENT = {
    "tokenToState": [
        [
            0,
            {
                "borrow": {"basis": "0.0", "value": "0.0"},
                "supply": {"basis": "10.0", "value": "10.5"},
            },
        ]
    ],
    "health": "atRisk",
    "healthFactor": "1.08",
}
DELEGATED = [{"validator": V1, "amount": "10.5", "lockedUntilTimestamp": NOW + DAY}]

# Rewards: V1 has every day of 110 weeks, V2 has the working days of two weeks.


def reward(validator, time, staked, delegators, commission):
    return source_tables.DailyReward(validator, time, staked, delegators, commission)


def rewards():
    for day in range(110 * 7 - 6, -1, -1):
        yield reward(V1, MONDAY + 2 * DAY - day * DAY, "36500.0", "9.0", "1.0")
    for week, paid in ((MONDAY - WEEK, "0.1"), (MONDAY - 2 * WEEK, "0.3")):
        for day in range(2, 6):
            yield reward(V2, week + day * DAY, "73.0", paid, "0.0")


# Snapshots.

SNAPSHOT = "20251001_state_1"
PLAIN = (10.5, 3.0, 4.0, False, 0)
UNIFIED = (20.5, 0.0, 4.0, True, 2)
MARGIN = (30.5, 1.0, 2.0, False, 3, 0.25, [["USDC", 5.5], ["HYPE", 6.5]], 99.5)
ACCOUNTS = {
    ("", "USDC"): {ALICE: PLAIN, BOB: UNIFIED, CAROL: MARGIN},
    ("eqx", "USDC"): {ALICE: PLAIN},
    ("pre", "USDH"): {BOB: PLAIN},
}


def account_row(token, user, values):
    ratio, branches, total = values[5:] or (None, None, None)
    given = dict(
        zip(
            ("account_value", "total_long_notional", "total_short_notional", "is_unified"),
            values,
            strict=False,
        )
    )
    given |= {"account_mode": values[4], "pm_ratio": ratio, "pm_total_account_value": total}
    given["pm_avail_by_branch"] = branches and [
        {"token": name, "available": free} for name, free in branches
    ]
    given |= {"snapshot_id": SNAPSHOT, "collateral_token": token, "user": user}
    return msgspec.convert(given, records.AccountValueRow)


def twap(market, id, **other):
    row = {
        "address": ALICE,
        "twap_id": id,
        "asset": market,
        "is_buy": True,
        "total_sz": 10.0,
        "executed_sz": 2.5,
        "remaining_sz": 7.5,
        "executed_ntl": 250.0,
        "progress_pct": 25.0,
        "duration_secs": 3_600,
        "start_time_ms": NOW - HOUR,
        "reduce_only": False,
        "randomize": True,
        "next_slice_time": "2025-10-01T12:00:30.000Z",
        "slice_number": 30,
        "market_name": None,
        "market_readable": None,
        "stop_px": None,
        "trigger_px": None,
        "trigger_above": None,
        "waiting": False,
    }
    return row | other


TWAPS = {
    "BTC": [
        twap("BTC", 1, stop_px=90.0),
        twap("BTC", 2, trigger_px=120.0, trigger_above=True, waiting=True),
    ],
    "ETH": [twap("ETH", 3, is_buy=False, address=BOB)],
    "eqx:TSLA": [twap("eqx:TSLA", 4)],
    "eqx:NVDA": [twap("eqx:NVDA", 5, reduce_only=True)],
    "pre:OPENAI": [twap("pre:OPENAI", 6)],
}


def sources():
    """Return the tables from which a service is built."""
    convert = msgspec.convert
    fills = [(ALICE, item) for item in ALICES] + [(BOB, item) for item in BOBS]
    fills += [(CAROL, item) for item in CAROLS] + [(ERIN, item) for item in ERINS]
    fills.sort(key=lambda one: (one[1]["time"], one[1]["txIndex"]))
    payments = sorted(PAYMENTS, key=lambda one: (one["time"], one["user"], one["delta"]["coin"]))
    return source_tables.Sources(
        start_ms=START,
        now_ms=NOW,
        label="written by hand",
        simulated=True,
        fills=[(user, convert(item, records.Fill)) for user, item in fills],
        funding=convert(payments, list[records.FundingRow]),
        ledger=[(ALICE, convert(item, records.LedgerUpdate)) for item in LEDGER],
        orders=[
            (user, convert(item, records.OrderStatus))
            for user, item in sorted(
                EVENTS + MANY, key=lambda one: (one[1]["statusTimestamp"], one[1]["txIndex"])
            )
        ],
        approvals=APPROVALS,
        slippage=convert(SAMPLES + LARGE_SAMPLES + TESLA_SAMPLES, list[records.SlippageSample]),
        metas=convert(METAS, dict[str, records.Meta]),
        contexts=convert(CONTEXTS, dict[str, list[records.AssetContext]]),
        depth=convert(DEPTH, records.Depth),
        states=convert(STATES, dict[str, dict[str, records.ClearinghouseState]]),
        unavailable=frozenset([FAILED]),
        limits=convert(LIMITS, dict[str, records.PerpDexLimits]),
        auctions=AUCTIONS,
        account_snapshots=[
            source_tables.AccountSnapshot(
                SNAPSHOT,
                NOW,
                {
                    (dex, token): [account_row(token, user, row) for user, row in users.items()]
                    for (dex, token), users in ACCOUNTS.items()
                },
            )
        ],
        twap_snapshots=[
            source_tables.TwapSnapshot(
                SNAPSHOT,
                NOW,
                {
                    name: [
                        convert({"snapshot_id": SNAPSHOT, "market": name, **item}, records.TwapRow)
                        for item in rows
                    ]
                    for name, rows in TWAPS.items()
                },
            )
        ],
        borrow_lend={ALICE: convert(LENT, records.BorrowLend)},
        delegations={ALICE: convert(DELEGATED, list[records.Delegation])},
        rewards=sorted(rewards(), key=lambda one: (one.time, one.validator)),
    )
