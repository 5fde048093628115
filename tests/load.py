"""Load on the service over a port, and what strangers can do to it.

``python -m tests.load`` runs ``toolkit serve`` with the demo exchange and prints tables;
``--write`` also writes them into docs/service.md. ``--seconds`` is the duration of each load.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

from reference_pages import replace_block

from toolkit.local_service import simulated_store

PAGE: Final = Path(__file__).resolve().parents[1] / "docs/service.md"
KEYS: Final = "".join(f'[[key]]\nname = "{name}"\nsecret = "{name}"\n' for name in ("one", "two"))
HEALTH: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HALF_OPEN: Final = b"POST /info HTTP/1.1\r\nHost: localhost\r\nX-"


@dataclass
class Server:
    """A running ``toolkit serve``."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path

    @property
    def cpu_seconds(self):
        """The processor time that the server has used."""
        values = self._stat("stat").rsplit(")", 1)[1].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self):
        """The resident memory."""
        return int(self._stat("statm").split()[1]) * resource.getpagesize() / 1e6

    def _stat(self, name):
        return Path(f"/proc/{self.process.pid}/{name}").read_text()


@contextlib.contextmanager
def run_service(size):
    """Run the command."""
    with tempfile.TemporaryDirectory() as folder:
        keys, log = Path(folder) / "keys.toml", Path(folder) / "log"
        keys.write_text(KEYS)
        keys.chmod(0o600)
        code = "from toolkit.cli import app; app()"
        command = [sys.executable, "-u", "-c", code, "serve", "--port", "0", "--size", size]
        with (
            log.open("w") as errors,
            subprocess.Popen(
                [*command, "--keys", str(keys)], stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            try:
                yield Server(process, port, log)
            finally:
                process.kill()


class Client(asyncio.Protocol):
    """A connection that sends a request again and again, and measures each."""

    def __init__(self, request, tally):
        self.request, self.tally = request, tally
        self.is_ending = False
        self._missing = 0
        self._head = b""

    def connection_made(self, transport):
        self._transport = cast(asyncio.Transport, transport)
        self.send()

    def send(self):
        self.began = time.perf_counter()
        self.is_waiting = True
        self._transport.write(self.request)

    def data_received(self, data):
        if not self._missing:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = b""
            self.status = int(head[9:12])
            length = head.lower().partition(b"content-length: ")[2]
            self._missing = int(length.partition(b"\r\n")[0]) - len(body)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._missing, self.is_waiting = 0, False
            self.tally.statuses[self.status] += 1
            self.tally.seconds.append(time.perf_counter() - self.began)
            if not self.is_ending:
                self.send()

    def connection_lost(self, error):
        if self.is_waiting:
            self.tally.cut += 1


@dataclass
class Tally:
    """What the clients of one load received."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    cut: int = 0
    """Requests without a complete response."""

    def percentile(self, share):
        """Return a quantile of the durations, in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1_000


async def open_clients(port, count, request, tally):
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(count):
        made = await loop.create_connection(lambda: Client(request, tally), "127.0.0.1", port)
        clients.append(made[1])
    return clients


async def probe_health(server, until):
    """Return how long ``/healthz`` took, ten times a second, each on a new connection."""
    seconds = []
    while time.monotonic() < until:
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HEALTH)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200"), answer
        writer.close()
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(0.1)
    return seconds


async def open_strangers(server, count):
    """Open connections that send nothing or half of the headers."""
    writers = []
    for number in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HALF_OPEN if number % 2 else b"")
        writers.append(writer)
    return writers


def page_request(user, key):
    """Return the request of a page of 2,000 fills."""
    body = json.dumps({"type": "userFillsByTime", "user": user, "startTime": 0}).encode()
    head = (
        f"POST /info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Accept-Encoding: zstd\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def measure_load(server, count, request, seconds):
    """Return the row of a load beside strangers, ended by SIGTERM."""
    tally = Tally()
    until = time.monotonic() + seconds
    clients = await open_clients(server.port, count, request, tally)
    health = asyncio.create_task(probe_health(server, until))
    memory = []
    while time.monotonic() < until:
        strangers = await open_strangers(server, 50)
        await asyncio.sleep(min(seconds / 6, max(0.0, until - time.monotonic())))
        memory.append(server.memory_mb)
        for writer in strangers:
            writer.close()
    slowest = max(await health)
    done = len(tally.seconds)
    for client in clients:
        client.is_ending = True
    running = sum(client.is_waiting for client in clients)
    server.process.send_signal(signal.SIGTERM)
    ended = time.monotonic()
    while server.process.poll() is None and time.monotonic() < ended + 20:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    finished = len(tally.seconds) - done
    errors = sum(times for status, times in tally.statuses.items() if status not in (200, 429))
    return [
        f"{count}",
        f"{done / seconds:.0f}",
        f"{errors}",
        f"{tally.percentile(0.5):.0f} / {tally.percentile(0.99):.0f} ms",
        f"{slowest * 1_000:.0f} ms",
        f"{memory[1]:.0f} / {memory[-1]:.0f} MB",
        f"{finished} of {running}, {tally.cut} cut",
    ]


async def measure_pages(server, request, seconds):
    """Return what one client received."""
    tally = Tally()
    (client,) = await open_clients(server.port, 1, request, tally)
    await asyncio.sleep(seconds)
    client.is_ending = True
    await asyncio.sleep(0.2)
    return tally


async def measure_turns(server, user, greedy, seconds):
    """Return p99 of a modest key alone, and beside 60 connections that repeat a request."""
    modest = page_request(user, "one")
    quiet = await measure_pages(server, modest, seconds)
    # In a process of its own: otherwise the modest client would wait for the greedy one itself.
    process = multiprocessing.Process(target=run_greedy, args=(server.port, greedy), daemon=True)
    process.start()
    await asyncio.sleep(2)  # for its imports
    beside = await measure_pages(server, modest, seconds)
    process.terminate()
    process.join()
    return quiet.percentile(0.99), beside.percentile(0.99)


def run_greedy(port, request):
    """Run 60 clients without end."""

    async def run():
        await open_clients(port, 60, request, Tally())
        await asyncio.sleep(3_600)

    asyncio.run(run())


def print_table(print_line, heading, rows):
    """Print a table in Markdown, a line at a time; `rows` may measure them."""
    print_line("")
    print_line(f"| {heading} |")
    print_line(f"|{' --- |' * (heading.count('|') + 1)}")
    for row in rows:
        print_line(f"| {row} |")


def measure_loads(size, user, seconds):
    for count in (8, 64, 500):
        with run_service(size) as server:
            request = page_request(user, "one")
            yield " | ".join(asyncio.run(measure_load(server, count, request, seconds)))


def measure_strangers(server, user, seconds):
    for what, key in (("of another key", "two"), ("with a wrong key", "none")):
        greedy = page_request(user, key)
        quiet, beside = asyncio.run(measure_turns(server, user, greedy, seconds / 3))
        ratio = beside / quiet
        yield f"60 busy connections {what} | {quiet:.1f} ms | {beside:.1f} ms | {ratio:.1f}"


def measure_all(size, seconds, print_line):
    """Measure everything, and print Markdown."""
    store = simulated_store(7, size)
    sql = "SELECT address FROM fill JOIN account ON id = account GROUP BY account"
    user = store.select_value(f"{sql} ORDER BY count(*) DESC LIMIT 1")
    store.close()
    print_line(
        f"Measured on {date.today()}: {platform.machine()}, {os.cpu_count()} processors, Python "
        f"{platform.python_version()}, the {size} exchange. Clients and service share the machine. "
        f"The load of the machine before the measurement was {os.getloadavg()[0]:.0f}."
    )
    print_line("")
    print_line(
        f"Clients request pages of 2,000 fills (zstd) for {seconds:.0f} s. 50 other connections "
        "are half-open or idle. SIGTERM ends the run."
    )
    print_table(
        print_line,
        "connections | pages per second | errors other than 429 | p50 / p99 | slowest `/healthz` "
        "| memory at the start / at the end | requests answered after SIGTERM",
        measure_loads(size, user, seconds),
    )
    print_line("")
    with run_service(size) as server:
        print_line("99 % of the requests of a key with few requests (p99) are answered within:")
        heading = "other connections | alone | beside them | ratio"
        print_table(print_line, heading, measure_strangers(server, user, seconds))


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description="Measure the service under load")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--size", default="demo", choices=("tiny", "demo", "large"))
    parser.add_argument(
        "--write", action="store_true", help="write the tables into docs/service.md"
    )
    options = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 4_096), files))
    lines: list[str] = []

    def print_line(line):
        lines.append(line)
        print(line, flush=True)

    measure_all(options.size, options.seconds, print_line)
    if options.write:
        PAGE.write_text(replace_block(PAGE.read_text("utf-8"), "load", "\n".join(lines)), "utf-8")


if __name__ == "__main__":
    main()
