"""Pulling the fills of 40 accounts over a port.

Each way runs in its own process, against the same service, and makes one frame of all rows. We
compare the toolkit with two typical programs: one uses `requests` and pandas, the other uses the
exchange's own Python SDK (`hyperliquid-python-sdk`) and pandas. They request the next page by time,
and drop rows that come twice. They do not check that no row is missing.

The target is 4 times the speed. The client spends 6.6 ms for a request:

- HTTP 2.1 ms, of which 0.4 ms are decompression and 0.2 ms the search for the key in the answer
- decoding 0.9 ms
- columns 1.4 ms
- checks of the rows 0.5 ms
- paging 0.3 ms
- frames 0.3 ms
- the rest: freeing memory, and the last `concat`

No single step dominates. A fifth of the requests confirms the end of a history, which the other
programs do not do. Without httpx, a request takes 0.4 ms less (5 % of the pull). But then the
client would have to handle addresses, proxies and keys itself. The next step would be the compiled
pass of the section "Bytes to frames". It would save decoding, columns, paging and freeing, which
take half of the time.

A second target is a client that needs no more processor time than the service. It needs 5 to 7
times as much. The service stores rows as finished JSON, and sends a page in 1.2 to 1.9 ms. The
client makes a Python object of each value, and checks the rows. With the compiled pass, it would
still need twice as much as the service, because HTTP, checks and frames alone take 2.9 ms.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.benchmarks.history import history_store, serve_history
from tests.benchmarks.side_by_side import Ratio

ROWS, ACCOUNTS = 250_000, 40
USERS = [f"0x{number:040x}" for number in range(1, ACCOUNTS + 1)]
KEY = "s3cret"
STATED = 1.7
NUMBERS = ["px", "sz", "startPosition", "closedPnl", "fee"]

TOOLKIT = """
import pandas as pd
import toolkit as tk
session = tk.connect(url, key, default=False)
def work():
    return pd.concat([tk.user_fills_by_time(user, 0, session=session) for user in users])
"""
TOGETHER = """
import toolkit as tk
session = tk.connect(url, key, default=False)
def work():
    return tk.many(tk.user_fills_by_time, users, 0, session=session)
"""
BY_HAND = f"""
import pandas as pd
NUMBERS = {NUMBERS}
def work():
    frames = []
    for user in users:
        rows, start = [], 0
        while True:
            page = ask(user, start)
            rows += page
            if len(page) < 2000:
                break
            start = page[-1]["time"]
        frame = pd.DataFrame(rows).drop_duplicates(["time", "tid", "oid", "side"])
        frame["user"] = user
        frames.append(frame)
    frame = pd.concat(frames)
    for column in NUMBERS:
        frame[column] = frame[column].astype(float)
    frame["time"] = pd.to_datetime(frame["time"], unit="ms", utc=True)
    return frame
"""
REQUESTS = (
    BY_HAND
    + """
import requests
http = requests.Session()
http.headers["Authorization"] = f"Bearer {key}"
def ask(user, start):
    body = {"type": "userFillsByTime", "user": user, "startTime": start}
    response = http.post(url + "/info", json=body)
    response.raise_for_status()
    return response.json()
"""
)
SDK = (
    BY_HAND
    + """
from hyperliquid.info import Info
info = Info(url.replace("http://", f"http://key:{key}@"), skip_ws=True)
def ask(user, start):
    return info.user_fills_by_time(user, start)
"""
)
WAYS = {
    "toolkit": TOOLKIT,
    "toolkit, tk.many": TOGETHER,
    "requests + pandas": REQUESTS,
    "hyperliquid-python-sdk + pandas": SDK,
}
MEASURE = """
import json, re, sys, time
from pathlib import Path
url, key, users = json.load(sys.stdin)
{way}
users, everyone = users[-2:], users
work()  # imports and connections
users = everyone
begun, cpu = time.perf_counter(), time.process_time()
frame = work()
print(json.dumps({{
    "seconds": time.perf_counter() - begun,
    "cpu": time.process_time() - cpu,
    # Not `resource`: its peak begins with that of the process that started this one.
    "mb": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
    "rows": len(frame),
}}))
"""


@dataclass(frozen=True)
class Pull:
    """What one way took: processor seconds of client and service, seconds, memory, rows."""

    cpu: float
    service_cpu: float
    seconds: float
    mb: float
    rows: int


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("pull") / "history.db"
    history_store(path, ROWS // ACCOUNTS, USERS).close()
    with serve_history(path) as server:
        yield server


def run(way, server):
    before = server.cpu_seconds
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(way=WAYS[way])],
        input=json.dumps([f"http://127.0.0.1:{server.port}", KEY, USERS]),
        capture_output=True,
        text=True,
        check=True,
    )
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Pull(service_cpu=server.cpu_seconds - before, **seen)


def client_time(pull):
    return pull.cpu


def test_pull_of_many_accounts(server, report):
    pulls = {way: min((run(way, server) for _ in range(2)), key=client_time) for way in WAYS}
    assert {pull.rows for pull in pulls.values()} == {ROWS}
    for way, pull in pulls.items():
        report(
            f"{way}: {pull.rows:,} fills in {pull.seconds:.1f} s, {pull.cpu:.2f} s of processor in "
            f"the client and {pull.service_cpu:.2f} s in the service, peak {pull.mb:.0f} MB"
        )
    ours = pulls["toolkit"]
    for way in list(WAYS)[2:]:
        what = f"pull of {ours.rows:,} fills of {ACCOUNTS} accounts over a port"
        report(Ratio(what, way, "toolkit", pulls[way].cpu * 1e3, ours.cpu * 1e3, STATED))
