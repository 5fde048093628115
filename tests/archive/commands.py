"""Run commands of `toolkit archive` in this process, also with a service on a port."""

import contextlib
from dataclasses import replace

from typer.testing import CliRunner

from tests.archive.world import CANARY
from toolkit.cli.archive import archive_app
from toolkit.local_service import application_of
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server


def run_command(*arguments, code=0):
    """Run a command, check its exit code and that it shows no key, and return the result."""
    result = CliRunner().invoke(archive_app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    assert CANARY not in result.output
    return result


@contextlib.contextmanager
def serving(store, monkeypatch, on_request=lambda: None):
    """Serve a store on the port of TOOLKIT_BASE_URL until the end of the block, and close it."""
    application = application_of(store, KeyQuotas([AcceptedKey("k", CANARY)]))

    def now_ms():
        on_request()
        return store.about["now_ms"]

    with contextlib.closing(store), run_server(replace(application, now_ms=now_ms)) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
        yield address
