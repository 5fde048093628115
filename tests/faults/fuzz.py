"""Random requests to the service, and random answers to the client.

``make fuzz``, or ``python -m tests.faults.fuzz 100000 10000``, sends so many of both to every
operation, and prints what came. docs/faults.md has the figures of a complete run.
"""

import argparse
import json
import random
import resource
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import stamina
import zstandard

import toolkit as tk
from toolkit.client import open_session
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS

SAMPLES: Final = Path(__file__).resolve().parents[2] / "data" / "samples"
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 1.5, 2**63, 10**400, "", "x", "0x", "0x" + "a" * 40, "\ud800", "ALL"),
    *([], ["x"] * 50, {}, {"type": "meta"}, "1756684800000_7", 1_756_684_800_000, "1e999", "-0"),
)
MOST_ROWS: Final = 40
"""Rows of a page: many pages, and answers that are read quickly."""

MOST_REQUESTS: Final = 500
"""A pull that sends more counts as endless."""

Body = dict[str, Any]


def sample_bodies():
    """Return a good request for each operation, by its type: those of data/samples."""
    bodies: dict[str, Body] = {}
    for name in OPERATIONS:
        bodies[name] = json.loads((SAMPLES / f"{name}.json").read_text())["request"]
        if OPERATIONS[name].page or OPERATIONS[name].latest:
            bodies[name]["limit"] = MOST_ROWS
    known = {field: value for body in bodies.values() for field, value in body.items()}
    known |= {"oid": 140000342337, "interval": "15m"}
    for name, operation in EXTRA_OPERATIONS.items():
        fields = {field: known[field] for field in operation.by_wire if field in known}
        within = {field.within for field in operation.parameters} - {""}
        bodies[name] = {**{place: dict(fields) for place in within}, **fields, "type": name}
    return bodies


def mutate_bytes(content, draw):
    """Return bytes with a few changed, removed, repeated or swapped parts."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(changed) + 1), draw.choice((1, 1, 3, 40))
        part = changed[at : at + length]
        changed[at : at + length] = draw.choice((b"", part * 2, part[::-1], draw.randbytes(length)))
    return bytes(changed)


def mutate_json(content, draw):
    """Return valid JSON in which a few values are removed, repeated, swapped or other ones."""
    answer = [json.loads(content)]
    for _ in range(draw.randint(1, 4)):
        places = list(_containers(answer))
        place = draw.choice(places)
        at = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
        match draw.randrange(4):
            case 0 if place is not answer:
                del place[at]
            case 1 if isinstance(place, list):
                place.insert(at, place[draw.randrange(len(place))])
            case 2:
                other = draw.choice(places)
                place[at] = draw.choice(list(other.values() if isinstance(other, dict) else other))
                if place[at] is place or place[at] in places:
                    place[at] = None  # no circles
            case _:
                place[at] = draw.choice(VALUES)
    return json.dumps(answer[0] if answer else None).encode()


def _containers(value):
    """Yield the lists and objects of a value that are not empty."""
    if isinstance(value, list | dict) and value:
        yield value
        for child in value.values() if isinstance(value, dict) else value:
            yield from _containers(child)


def mutate_answer(content, draw):
    """Return a damaged answer: of its bytes, its JSON values, or what a snapshot compresses."""
    if draw.random() < 0.5:
        return mutate_bytes(content, draw)
    if content.startswith((b"[", b"{")):
        return mutate_json(content, draw)
    # The number of snapshots, and the length of the first one, come before its zstd frame.
    start = 8 if content[8:12] == zstandard.FRAME_HEADER else 0
    try:
        length = int.from_bytes(content[4:8], "little") if start else len(content)
        blob = content[start : start + length]
        plain = zstandard.ZstdDecompressor().decompress(blob, max_output_size=2**24)
    except zstandard.ZstdError:
        return mutate_bytes(content, draw)
    changed = zstandard.ZstdCompressor().compress(mutate_bytes(plain, draw))
    if not start:
        return changed
    rest = content[start + len(blob) :]
    return content[:4] + len(changed).to_bytes(4, "little") + changed + rest


def fuzz_requests(session, count, seed=0):
    """Send random requests to the service, and return the number of answers of each status."""
    draw, statuses = random.Random(seed), Counter[str]()
    bodies = list(sample_bodies().values())
    names = sorted({name for body in bodies for name in body} | {"endTime", "cursor", "dex"})
    for _ in range(count):
        body = dict(draw.choice(bodies))
        for _ in range(draw.randint(0, 3)):
            body[draw.choice(names)] = draw.choice(VALUES)
        content = json.dumps(body).encode()
        if draw.random() < 0.3:
            content = mutate_bytes(content, draw)
        answer = session.client.post("/info", content=content)
        statuses[str(answer.status_code)] += 1
        assert answer.status_code < 500, content
        if answer.status_code != 200:
            assert isinstance(answer.json()["error"], str), content
    return statuses


class MutatingTransport(httpx.BaseTransport):
    """A transport that mutates the answers of a session, a part of them or all.

    Attributes
    ----------
    requests
        The number of requests of the current pull.
    """

    def __init__(self, session, draw):
        self.requests = 0
        self._inner = tk.testing.faulty(session, {})
        self._draw = draw
        self._answers: dict[bytes, httpx.Response] = {}

    def handle_request(self, request):
        """Return an answer, mutated or not. Unchanged first pages let later pages be mutated."""
        self.requests += 1
        assert self.requests <= MOST_REQUESTS, "the pull does not come to an end"
        body = request.read()
        if body not in self._answers:
            answer = self._inner.handle_request(request)
            content = b"".join(answer.iter_raw())
            answer = httpx.Response(answer.status_code, headers=answer.headers, content=content)
            self._answers[body] = answer
        answer = self._answers[body]
        content = answer.content
        if request.method == "POST" and self._draw.random() < 0.6:
            content = mutate_answer(content, self._draw)
        headers = [(name, value) for name, value in answer.headers.items() if "-length" not in name]
        stream = httpx.ByteStream(content)
        return httpx.Response(answer.status_code, headers=headers, stream=stream)


def fetch_functions():
    """Return a call for each operation, by its type; the call takes the session."""
    calls: dict[str, Callable[..., Any]] = {}
    for name, body in sample_bodies().items():
        if name in OPERATIONS:
            by_wire, fetch = OPERATIONS[name].by_wire, getattr(tk, OPERATIONS[name].function)
            arguments = {
                by_wire[wire].python: value for wire, value in body.items() if wire != "type"
            }
            calls[name] = lambda session, fetch=fetch, arguments=arguments: fetch(
                **arguments, session=session
            )
        else:
            calls[name] = lambda session, body=body: _frame_of(body, session)
    return calls


def _frame_of(body, session):
    """Return the frame of an operation that has no fetch function, or the answer itself."""
    answer = tk.info(body, session=session)
    has_frame = bool(EXTRA_OPERATIONS[body["type"]].tables)
    return tk.frame(body["type"], answer) if has_frame else answer


def fuzz_answers(session, count, seed=0):
    """Let the client read random answers, and return the number of frames and of each error."""
    draw, outcomes = random.Random(seed), Counter[str]()
    calls = list(fetch_functions().values())
    transport = MutatingTransport(session, draw)
    with (
        stamina.set_testing(True, attempts=1),  # no waits
        open_session("http://localhost", transport=transport, attempts=1) as reader,
    ):
        for _ in range(count):
            transport.requests = 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    draw.choice(calls)(reader)
                    outcomes["frame"] += 1
                except tk.ToolkitError as error:
                    outcomes[type(error).__name__] += 1
    return outcomes


def _resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(run, session, count):
    """Return a line with the outcomes, the time, and the memory after each tenth of a run."""
    begun, outcomes, memory, slowest = time.monotonic(), Counter[str](), [], 0.0
    for tenth in range(10):
        part_begun = time.monotonic()
        outcomes += run(session, count // 10, tenth)
        slowest = max(slowest, time.monotonic() - part_begun)
        memory.append(round(_resident_mb()))
    return (
        f"{count:,} in {time.monotonic() - begun:.0f} s, slowest tenth {slowest:.0f} s, "
        f"{' '.join(map(str, memory))} MB: {dict(outcomes.most_common())}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("requests", type=int, nargs="?", default=100_000)
    parser.add_argument("answers", type=int, nargs="?", default=10_000)
    given = parser.parse_args()
    service = tk.local(seed=7, size="tiny", default=False)
    print("requests:", measure(fuzz_requests, service, given.requests), flush=True)
    print("answers:", measure(fuzz_answers, service, given.answers), flush=True)
