"""Pages of 2,000 fills over a port.

Each server runs in its own process, and sends the same pages without compression to one client.
Only the processor time of the server counts. We compare the service with a typical web service:
FastAPI and uvicorn, columns in SQLite, `json`. We also compare it with nginx, which only sends
finished files from the disk. nginx is measured if it is installed.
"""

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import time

from tests.benchmarks.history import START, history_store, serve_history
from tests.benchmarks.side_by_side import Ratio
from tests.benchmarks.web_framework import PAGE, serve_columns, write_columns
from tests.load import Server

ROWS, USERS = 6_250, [f"0x{number:040x}" for number in range(1, 41)]
STATED = 10.0
HEADERS = {"Authorization": "Bearer s3cret", "Content-Type": "application/json"}


def questions():
    """Return method, path and body of three pages of each account."""
    starts = [START + 1_000 * row for row in (0, 1_500, 4_000)]
    bodies = [
        {"type": "userFillsByTime", "user": user, "startTime": start}
        for start in starts
        for user in USERS
    ]
    return [("POST", "/info", json.dumps(body).encode()) for body in bodies]


def ask(port, asked):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        for method, path, body in asked:
            connection.request(method, path, body, HEADERS)
            response = connection.getresponse()
            assert response.status == 200
            yield response.read()


def milliseconds_of_page(server, asked, rounds):
    """Return the processor time of the server for a page, after one round for its caches."""
    sizes = [len(page) for page in ask(server.port, asked)]
    assert min(sizes) > 500_000
    begun = server.cpu_seconds
    for _ in range(rounds):
        for _page in ask(server.port, asked):
            pass
    return 1e3 * (server.cpu_seconds - begun) / rounds / len(asked)


@contextlib.contextmanager
def serve_files(folder):
    """Serve files with nginx in one process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    config = folder / "nginx.conf"
    temporary = "\n".join(
        f"{name}_temp_path {folder / name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config.write_text(
        f"daemon off; master_process off; error_log stderr crit; pid {folder / 'pid'};\n"
        "events {}\n"
        f"http {{ access_log off; sendfile on; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; keepalive_requests 100000; }} }}\n"
    )
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)], text=True) as process:
        try:
            for _ in range(100):
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.05)
            yield Server(process, port, config)
        finally:
            process.kill()


def test_page_over_a_port(tmp_path, report):
    history_store(tmp_path / "history.db", ROWS, USERS).close()
    write_columns(tmp_path / "columns.db", ROWS, USERS)
    asked = questions()
    with serve_history(tmp_path / "history.db") as server:
        pages = list(ask(server.port, asked))
        ours = milliseconds_of_page(server, asked, 3)
    with serve_columns(tmp_path / "columns.db") as server:
        beside = milliseconds_of_page(server, asked[::4], 1)
        for theirs, page in zip(ask(server.port, asked[::40]), pages[::40], strict=True):
            assert len(json.loads(page)) == PAGE
            assert [row["tid"] for row in json.loads(theirs)] == [
                row["tid"] for row in json.loads(page)
            ]
    what = f"a page of {PAGE:,} fills, processor time of the server"
    report(Ratio(what, "FastAPI, SQLite columns", "the service", beside, ours, STATED))
    if shutil.which("nginx") is None:
        report("nginx is not installed, so the limit was not measured")
        return
    files = []
    for number, page in enumerate(pages):
        (tmp_path / f"{number}.json").write_bytes(page)
        files.append(("GET", f"/{number}.json", b""))
    with serve_files(tmp_path) as server:
        limit = milliseconds_of_page(server, files, 6)
    report(Ratio(what, "the service", "nginx, finished files", ours, limit))
