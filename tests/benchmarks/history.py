"""Long histories: a fill a second opens or closes a position in five coins.

`python -m tests.benchmarks.history FILE` serves a store of them on a free port.
"""

import contextlib
import itertools
import subprocess
import sys
from pathlib import Path

from tests.load import Server
from toolkit.client import open_session
from toolkit.contract.records import Fill
from toolkit.contract.source_tables import Sources
from toolkit.local_service import InProcessTransport
from toolkit.service import AcceptedKey, Application, KeyQuotas, build_store, open_store
from toolkit.service.http import HttpServer, bind_socket

START = 1_756_684_800_000
USER = "0x" + "b" * 40
COINS = ("BTC", "ETH", "SOL", "HYPE", "DOGE")


def history_fills(rows, user=USER):
    """Yield user and fill. Fills come in pairs of a coin: the second one closes the first."""
    for row in range(rows):
        closes = row % 2 == 1
        yield (
            user,
            Fill(
                coin=COINS[row // 2 % len(COINS)],
                px=f"{100 + row % 97}.5",
                sz="1.25",
                side="A" if closes else "B",
                time=START + 1_000 * row,
                start_position="1.25" if closes else "0.0",
                dir="Close Long" if closes else "Open Long",
                closed_pnl="1.25" if closes and row % 97 else "-120.0" if closes else "0.0",
                hash=f"0x{row:064x}",
                oid=10**9 + row,
                crossed=row % 3 > 0,
                fee="0.050625",
                tid=10**14 + row,
                fee_token="USDC",
                twap_id=None,
                tx_index=row % 40,
            ),
        )


def history_store(path, rows, users=(USER,)):
    """Build a store of the first rows of the history of some accounts."""
    return build_store(
        Sources(
            start_ms=START,
            now_ms=history_end(rows) + 1_000,
            label="a long history",
            simulated=True,
            fills=itertools.chain.from_iterable(history_fills(rows, user) for user in users),
        ),
        path,
    )


def history_end(rows):
    """Return the time of the last of some rows."""
    return START + 1_000 * (rows - 1)


def history_application(store):
    """Return the service of a store; its key is s3cret."""
    now = int(store.about["now_ms"])
    return Application(
        store, KeyQuotas([AcceptedKey("all", "s3cret")]), now_ms=lambda: now, at_ms=lambda: 0
    )


def history_session(store):
    """Return a session whose service is in this process."""
    application = history_application(store)
    return open_session(
        "http://local",
        "s3cret",
        transport=InProcessTransport(application),
        now_ms=application.now_ms,
        default=False,
    )


@contextlib.contextmanager
def serve_module(module, path):
    """Run a module, which serves a file on a free port and prints the port."""
    command = [sys.executable, "-m", module, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process, int(process.stdout.readline()), path)
        finally:
            process.kill()


def serve_history(path):
    """Serve the file of a store from a process of its own."""
    return serve_module("tests.benchmarks.history", path)


if __name__ == "__main__":
    listener = bind_socket("127.0.0.1", 0)
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    HttpServer(history_application(open_store(Path(sys.argv[1]))), listener).run()
