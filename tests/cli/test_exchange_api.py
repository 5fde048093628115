"""The command line against services that play the exchange's own API and the query service."""

import json

import pytest
from typer.testing import CliRunner

from toolkit.cli import app
from toolkit.contract.apis import EXCHANGE, SERVICE
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a command against a service, which plays an API."""
    store = simulated_store(7, "tiny")

    def run(api, *arguments):
        access = KeyQuotas([AcceptedKey("mine", "s3cret")])
        with run_server(application_of(store, access, api=api)) as address:
            return CliRunner().invoke(app, [*arguments, "--base-url", address])

    monkeypatch.delenv("TOOLKIT_API_KEY", raising=False)
    yield run
    store.close()


def test_commands_without_a_key(run):
    source = ("--exchange", "hyperliquid")
    request = json.dumps({"type": "exchangeStatus"})
    answer = run(EXCHANGE, "info", request, *source)
    assert "time" in json.loads(answer.stdout)
    plan = json.loads(run(EXCHANGE, "plan", "meta", "--json", *source).stdout)
    assert (plan["points"], plan["tokens"]) == (20, None)
    rows = run(EXCHANGE, "fetch", "meta", "--out", "-", *source).stdout.splitlines()
    assert json.loads(rows[0])["name"] == "BTC"
    refused = run(EXCHANGE, "fetch", "currentDepth", *source)
    assert refused.exit_code == 2
    assert SERVICE.title in refused.stderr.lower()


def test_doctor_asks_what_the_key_has_used(run, monkeypatch):
    monkeypatch.setenv("TOOLKIT_API_KEY", "s3cret")
    monkeypatch.delenv("TOOLKIT_BASE_URL", raising=False)
    checks = json.loads(run(SERVICE, "doctor", "--json").stdout)
    (found,) = [check for check in checks if check["name"] == "answer"]
    assert found["state"] == "ok"
    assert "1 tokens" in found["found"]
    checks = json.loads(run(EXCHANGE, "doctor", "--json", "--exchange", "hyperliquid").stdout)
    (found,) = [check for check in checks if check["name"] == "answer"]
    assert "without a key" in found["found"]
