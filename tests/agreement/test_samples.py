"""data/samples: a request and an answer for each operation, with every branch, up to date."""

import json
import runpy
import typing
from pathlib import Path
from typing import get_args, get_origin

import httpx
import msgpack
import msgspec
import pytest
import zstandard

import toolkit as tk
from tests.fetch.wire import rows_of_request
from tests.simulation.test_coverage import DIRECTIONS
from toolkit.client import open_session
from toolkit.contract.fields import split_annotation
from toolkit.contract.operations import FETCHED
from toolkit.contract.order_states import GROUPS
from toolkit.contract.records import DELTA_FIELDS, Record
from toolkit.contract.requests import check_request
from toolkit.contract.rows import ROWS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "data" / "samples"
MAKE = runpy.run_path(str(ROOT / "docs" / "samples.py"), run_name="samples")

READ_ONLY = {
    "MarginSummary.withdrawable absent": "old answers have it at the top level",
    "Position.entry_px null": "the live service may write it",
    "Order.cloid absent": "the live service always writes the key",
    **{
        f"OpenInterest.oi_{name} absent": "sectors have USD only"
        for name in ("open", "high", "low", "close")
    },
    "OpenInterest.oi_usd null": "a market without a trade",
    "FundingRate.premium null": "the live service may write it",
    "AssetContext.day_base_vlm absent": "older answers lack it",
    "metaAndAssetCtxs null": "a market without a state; its place in the list counts",
    "TwapRow.next_slice_time null": "the live service may write it",
    "TwapRow.market_name there": "always null on perps",
    "TwapRow.market_readable there": "always null on perps",
    "Fill.liquidation_mark_px there": "older answers have it there",
    "ClearinghouseState.cross_maintenance_margin_used absent": "the live service always has it",
    "ClearinghouseState.withdrawable absent": "the live service always has it",
    "MarginTier.lower_bound absent": "the live service always has it",
    "MarginTier.max_leverage absent": "the live service always has it",
    "MarginTable.description absent": "the live service writes empty text",
    "Meta.collateral_token absent": "the live service always has it",
    "Meta.margin_tables absent": "the live service always has it",
    "PerpAsset.margin_table_id absent": "the live service always has it",
    "Position.cum_funding absent": "the live service always has it",
    "Position.max_leverage absent": "the live service always has it",
    "PnlSummary.human_score there": "not simulated",
    "PredictedFunding.funding_interval_hours absent": "older answers lack it",
    "SpotToken.deployer_trading_fee_share there": "not simulated",
    "SpotToken.evm_contract there": "not simulated",
    "SpotToken.full_name there": "not simulated",
}
"""Branches that our service never writes, and why; readers accept them."""

WORDS = {
    "Fill.side": "AB",
    "Fill.dir": DIRECTIONS,
    "Order.side": "AB",
    "Order.tif": ["Gtc", "Ioc", "Alo", "FrontendMarket", "LiquidationMarket"],
    "Order.order_type": [
        *("Market", "Limit", "Stop Market", "Stop Limit", "Take Profit Market"),
        *("Take Profit Limit", "Twap Slice", "Vault Close", "Spot Dust Conversion"),
    ],
    "OrderStatus.status": [state for group in GROUPS.values() for state in group],
    "LedgerDelta.type": DELTA_FIELDS,
    "LedgerDelta.leverage_type": ["Cross", "Isolated"],
    "LedgerDelta.operation": ["supply", "withdraw", "repay", "borrow"],
    "Leverage.type": ["cross", "isolated"],
    "BorrowLend.health": ["healthy", "atRisk", "marketLiquidatable", "backstopLiquidatable"],
    "FundingDelta.type": ["funding"],
}
"""Field -> the words that the samples must have."""


def sample_exchanges():
    """Yield (operation, exchange) of all samples, with those that show further branches."""
    for name, operation in FETCHED.items():
        sample = json.loads((FOLDER / f"{name}.json").read_text())
        yield from ((operation, exchange) for exchange in [sample, *sample.get("more", [])])


EXCHANGES = list(sample_exchanges())


@pytest.fixture(scope="module")
def seen():
    return {
        branch
        for operation, exchange in EXCHANGES
        for branch in MAKE["answer_branches"](operation, exchange["request"], exchange["response"])
    }


def taken(annotation, place, met):
    """Return the branches that an annotation allows, with nested ones; `met`: records so far."""
    shape = split_annotation(annotation)
    if shape.null:
        yield place, "null"
    if shape.absent:
        yield place, "absent"
    if shape.null or shape.absent:
        yield place, "there"
    if isinstance(shape.type, type) and issubclass(shape.type, Record):
        yield from record_branches(shape.type, met)
    elif get_origin(shape.type) in (list, tuple, dict):
        if get_origin(shape.type) is list:
            yield place, "rows"
        for part in get_args(shape.type):
            yield from taken(part, place, met)


def record_branches(record, met):
    if record not in met:
        met.add(record)
        hints = typing.get_type_hints(record, include_extras=True)
        for field in msgspec.structs.fields(record):
            yield from taken(hints[field.name], f"{record.__name__}.{field.name}", met)


def test_samples_cover_every_branch(seen):
    met, allowed = set(), set()
    for name, row in FETCHED.items():
        allowed |= set(
            record_branches(row.tables[0].record, met)
            if row.binary
            else taken(row.answer, name, met)
        )
    assert {" ".join(branch) for branch in allowed - seen} == READ_ONLY.keys()


def test_samples_cover_every_word(seen):
    missing = {(field, word) for field, words in WORDS.items() for word in words} - seen
    assert missing == set()


def test_samples_cover_account_modes():
    [exchange] = [item for row, item in EXCHANGES if row.type == "accountValueSnapshots"]
    tuples = [user for _, _, users in exchange["response"] for user in users.values()]
    assert {entry[4] for entry in tuples} == {0, 1, 2, 3}
    assert {len(entry) for entry in tuples} == {5, 8}


def test_samples_have_request_and_answer():
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json" for name in FETCHED}
    for operation, exchange in EXCHANGES:
        assert list(exchange)[:3] == ["request", "status", "response"]
        assert exchange.keys() <= {"request", "status", "response", "left_out", "more"}
        assert (exchange["request"]["type"], exchange["status"]) == (operation.type, 200)
        check_request(operation, exchange["request"])
    first = {operation.type: exchange["response"] for operation, exchange in EXCHANGES[::-1]}
    assert all(first.values())
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert max(sizes) < 300_000
    assert sum(sizes) < 1_000_000


def frames(made):
    return list(made) if isinstance(made, tuple) else [made]


@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_frames_read_samples(numbers):
    for operation, exchange in EXCHANGES:
        if operation.binary or exchange["request"].get("dex") == "ALL_DEXES":
            continue  # read below: its shape follows from the request
        result = frames(tk.frame(operation.type, exchange["response"], numbers=numbers))
        if get_origin(operation.answer) is list and operation.type not in ROWS:
            assert len(result[0]) == len(exchange["response"])
        assert any(map(len, result)) or not exchange["response"], operation.type


# The answers of samples are shortened, and their rows show that others are missing between them.
@pytest.mark.filterwarnings("ignore:.*(contradict each other|may be missing)")
def test_fetch_functions_read_samples():
    for operation, exchange in EXCHANGES:
        arguments = check_request(operation, exchange["request"]).items()
        given = {name: value for name, value in arguments if value is not None}
        with open_session(
            "http://samples",
            "samples",
            transport=Replaying(operation, exchange),
            simulated=True,
            default=False,
        ) as session:
            result = frames(getattr(tk, operation.function)(**given, session=session))
        assert any(map(len, result)) or not exchange["response"], operation.type


class Replaying(httpx.BaseTransport):
    """A transport that answers every request with its sample, or with its rows in the range."""

    def __init__(self, operation, exchange):
        self._binary, self._exchange = operation.binary, exchange
        self._is_paged = operation.paging != "none"

    def handle_request(self, request):
        if not self._binary:
            rows = self._exchange["response"]
            if self._is_paged:
                rows = rows_of_request(rows, json.loads(request.content))
            return httpx.Response(200, content=json.dumps(rows))
        pack = zstandard.ZstdCompressor().compress
        blobs = [pack(msgpack.packb(entry)) for entry in self._exchange["response"]]
        content = len(blobs).to_bytes(4, "little")
        content += b"".join(len(blob).to_bytes(4, "little") + blob for blob in blobs)
        headers = {"x-payload-format": "multi-zstd", "x-compression": "inner-zstd"}
        return httpx.Response(200, headers=headers, content=content)


def test_samples_are_fresh():
    result = MAKE["all_samples"]()
    stale = [name for name, text in result.items() if (FOLDER / name).read_text() != text]
    assert stale == [], "run: python docs/samples.py"
