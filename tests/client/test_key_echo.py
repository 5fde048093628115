"""An answer that contains the API key: no output of the package has it, wherever it is."""

import gzip
import html
import io
import json
import logging
import pickle
import threading
import traceback
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import httpx
import msgpack
import pytest
import zstandard
from typer.testing import CliRunner

import toolkit as tk
from toolkit.cli import app
from toolkit.client import connect, open_session
from toolkit.contract.field_deviations import forget_deviations
from toolkit.errors import KeyExposed

KEY = 'canary"7f3a/secret<key>'
PLAIN = "canary-7f3a-secret-key"
USER = "0x" + "1" * 40
FILL = {
    **{"coin": "BTC", "px": "1.5", "sz": "2.0", "side": "B", "time": 1_758_000_000_000, "oid": 7},
    **{"startPosition": "0.0", "dir": "Open Long", "closedPnl": "0.0", "hash": "0x0", "tid": 9},
    **{"crossed": True, "fee": "0.1", "feeToken": "USDC", "twapId": None, "txIndex": 1},
}
SNAPSHOT = ["s", "USDC", {USER: (1.5, 1.0, 0.5, False, 0)}]


def reply_json(status, body, **headers):
    return httpx.Response(status, content=json.dumps(body).encode(), headers=headers)


def reply_text(status, text):
    return httpx.Response(status, content=text.encode())


def escape(text, prefix="\\"):
    """Return a text with each character as an escape of JSON."""
    return "".join(f"{prefix}u{ord(letter):04x}" for letter in text)


def encode_percent(text):
    """Return a text with each byte as an escape of addresses, letters too."""
    return "".join(f"%{byte:02x}" for byte in text.encode())


def reply_escaped(status, body, key):
    return httpx.Response(status, content=body.replace("KEY", key).encode())


ESCAPED_FILL = json.dumps([FILL | {"hash": "KEY"}])

REPLIES = {
    "escaped value": lambda key: reply_escaped(200, ESCAPED_FILL, escape(key)),
    "escaped letter": lambda key: reply_escaped(
        200, ESCAPED_FILL, escape(key[0]) + json.dumps(key[1:])[1:-1].replace("/", "\\/")
    ),
    "escaped twice": lambda key: reply_escaped(200, ESCAPED_FILL, escape(key, "\\\\")),
    "escaped in an error": lambda key: reply_escaped(401, '{"error": "no KEY"}', escape(key)),
    "escaped in a failure": lambda key: reply_escaped(500, '{"error": "no KEY"}', escape(key)),
    "field name": lambda key: reply_json(200, [FILL | {key: 1}]),
    "text value": lambda key: reply_json(200, [FILL | {"hash": key}]),
    "wrong value": lambda key: reply_json(200, [FILL | {"px": key}]),
    "wrong type": lambda key: reply_json(200, [FILL | {"time": key}]),
    "key of a row": lambda key: reply_json(200, [FILL | {"coin": key}]),
    "nested value": lambda key: reply_json(200, [FILL | {"new": {"a": [key]}}]),
    "no list": lambda key: reply_json(200, {"error": key}),
    "text": lambda key: reply_text(200, f"hello {key}"),
    "web page": lambda key: reply_text(200, f"<html><title>{html.escape(key)}</title></html>"),
    "cut text": lambda key: reply_text(200, f'[{{"coin": "{key}'),
    "escaped slash": lambda key: reply_text(200, json.dumps([key]).replace("/", "\\/")),
    "compressed": lambda key: httpx.Response(
        200, content=gzip.compress(key.encode()), headers={"Content-Encoding": "gzip"}
    ),
    "header": lambda key: reply_json(200, [FILL], **{"x-echo": key, "x-other": quote(key)}),
    "source label": lambda key: reply_json(200, [FILL], **{"x-toolkit-source": key}),
    "label, percent-encoded": lambda key: reply_json(
        200, [FILL], **{"x-toolkit-source": encode_percent(key)}
    ),
    "missing rows, percent-encoded": lambda key: reply_json(
        200, [FILL], **{"x-toolkit-incomplete": encode_percent(key)}
    ),
    "error, percent-encoded": lambda key: reply_json(400, {"error": encode_percent(key)}),
    "error, percent-encoded as HTML": lambda key: reply_json(
        400, {"error": encode_percent(key).replace("%", "&#37;")}
    ),
    "header of a redirect": lambda key: reply_json(
        302, {}, location=f"https://elsewhere/?key={quote(key, safe='')}"
    ),
    "reason": lambda key: httpx.Response(
        200, json=[FILL], extensions={"reason_phrase": key.encode()}
    ),
    "retry after": lambda key: reply_json(429, {"error": "slow"}, **{"retry-after": key}),
    **{
        f"status {status} {name}": reply
        for status in (400, 401, 403, 404, 418, 500, 502, 520)
        for name, reply in {
            "message": lambda key, status=status: reply_json(status, {"error": f"no: {key}"}),
            "name": lambda key, status=status: reply_json(status, {key: 1}),
            "text": lambda key, status=status: reply_text(status, f"no {key}"),
            "page": lambda key, status=status: reply_text(
                status, f"<html><h1>{html.escape(key)}</h1>error code: 1010"
            ),
            "header": lambda key, status=status: reply_json(status, {}, **{"cf-ray": key}),
        }.items()
    },
}


@pytest.fixture(autouse=True)
def _new_warnings():
    forget_deviations()
    yield
    forget_deviations()


def forms_of(key):
    json_text = json.dumps(key)[1:-1]
    forms = [key, json_text, json_text.replace("/", "\\/"), quote(key, safe=""), html.escape(key)]
    return [*forms, encode_percent(key)]


def collect_outputs(key, reply, folder, fetch, *arguments):
    """Return all that the package shows or writes when a service gives one reply."""
    shown, log = [], io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    transport = httpx.MockTransport(lambda _: reply(key))
    session = open_session("https://s.test", key, transport=transport, attempts=1)
    archive = tk.archive.open(folder / "archive")
    steps = {
        "frame": lambda: fetch(*arguments, extra="keep", session=session),
        "raw": lambda: tk.raw(fetch, *arguments, session=session),
        "info": lambda: tk.info({"type": "userFills", "user": USER}, session=session),
        "many": lambda: tk.many(tk.user_fills, [USER], session=session),
        "archive": lambda: archive.refresh(fetch, *arguments, session=session),
    }
    try:
        for name, step in steps.items():
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    made = step()
                    shown += [repr(made), repr(getattr(made, "attrs", ""))]
                    if hasattr(made, "to_csv"):
                        shown += [made.to_csv(), repr(list(made)), repr(tk.provenance(made))]
                except tk.ToolkitError as error:
                    shown += [name, str(error), repr(error), repr(vars(error))]
                    shown += [pickle.dumps(error).decode("latin1")]
                    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
                    shown += [str(f.locals) for f in trace.stack if "toolkit/" in f.filename]
                    shown += [*trace.format(chain=False)][-3:]
            shown += [str(one.message) for one in warned]
        shown += [repr(session), session._repr_html_(), session.label, repr(vars(session))]
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [*shown, log.getvalue(), *(path.read_bytes().decode("latin1") for path in files)]


GROUPS = {
    "escaped": [name for name in REPLIES if name.startswith("escaped")],
    "text": [name for name in REPLIES if not name.startswith(("escaped", "status"))],
    "status": [name for name in REPLIES if name.startswith("status")],
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("key", [PLAIN, KEY], ids=["plain", "odd"])
def test_no_output_has_echoed_key(key, group, tmp_path):
    leaks = []
    for number, name in enumerate(GROUPS[group]):
        forget_deviations()
        folder = tmp_path / str(number)
        outputs = collect_outputs(key, REPLIES[name], folder, tk.user_fills, USER)
        leaks += [(name, form) for form in forms_of(key) if any(form in text for text in outputs)]
    assert leaks == []


def test_snapshot_with_key_is_refused(tmp_path):
    for place in range(3):
        snapshot = [*SNAPSHOT]
        margin = {USER: (1.5, 1.0, 0.5, False, 0, None, [(PLAIN, 1)])}
        snapshot[place] = PLAIN if place < 2 else margin
        reply = httpx.Response(200, content=zstandard.compress(msgpack.packb(snapshot)))
        folder, fetch = tmp_path / str(place), tk.account_value_snapshots
        outputs = collect_outputs(PLAIN, lambda _, reply=reply: reply, folder, fetch, "USDC")
        assert any("contains your API key" in text for text in outputs)
        assert not [text for text in outputs if PLAIN in text]


def test_usual_answers_are_unchanged(tmp_path):
    rows = [FILL, FILL | {"tid": 10}]
    outputs = collect_outputs(PLAIN, lambda _: reply_json(200, rows), tmp_path, tk.user_fills, USER)
    assert not any("contains your API key" in text for text in outputs)


def test_key_as_address_is_not_shown():
    for address in (PLAIN, f"{PLAIN}.example", f"//{PLAIN}", f"x:{PLAIN}"):
        with pytest.raises(ValueError, match="api_key") as caught:
            connect(address, default=False)
        trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in trace.stack if "toolkit/client" in frame.filename]
        assert ours
        assert PLAIN not in str(caught.value) + str([frame.locals for frame in ours])


EXPOSED = [
    # address, environment, words of the warnings
    ("http://service.test", {}, ["without encryption"]),
    ("http://192.0.2.1:8787", {}, ["without encryption"]),
    ("https://service.test", {}, []),
    ("http://127.0.0.1:8787", {"HTTP_PROXY": "http://proxy.test:3128"}, []),
    ("http://localhost:8787", {}, []),
    ("http://localhost.:8787", {}, []),
    ("http://localhost.test.:8787", {}, ["without encryption"]),
    ("http://[::1]:8787", {}, []),
    ("https://service.test", {"HTTPS_PROXY": "http://me:pass@proxy.test:3128"}, ["proxy.test"]),
    ("https://service.test", {"ALL_PROXY": "proxy.test:3128"}, ["proxy.test"]),
    ("https://service.test", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "service.test"}, []),
    ("http://service.test", {"HTTP_PROXY": "http://p:1"}, ["without encryption", "proxy p"]),
]


def test_exposed_key_warns(monkeypatch):
    for address, environment, words in EXPOSED:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            connect(address, PLAIN, default=False)
            session = connect(address, default=False)
        session.close()
        assert [one.category for one in warned] == [KeyExposed] * len(words)
        assert {one.filename for one in warned} <= {__file__}
        for one, word in zip(warned, words, strict=True):
            assert word in str(one.message)
            assert PLAIN not in str(one.message)
            assert "pass@" not in str(one.message)


def test_local_address_uses_no_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    for address in ("http://127.0.0.1:8787", "http://localhost:1", "http://[::1]:9"):
        session = connect(address, PLAIN, default=False)
        transport = session.client._transport_for_url(httpx.URL(f"{address}/info"))
        assert transport is session.client._transport


class EchoHandler(BaseHTTPRequestHandler):
    """A service that repeats the key of a request in its status line, headers and body."""

    def do_POST(self):
        key = self.headers["Authorization"].removeprefix("Bearer ")
        status = 400 if b"meta" in self.rfile.read(int(self.headers["Content-Length"])) else 200
        body = json.dumps({"error": key} if status == 400 else []).encode()
        self.send_response(status, key)
        self.send_header("x-echo", key)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def echo_address():
    with ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_debug_logs_and_commands_hide_key(echo_address, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOOLKIT_API_KEY", PLAIN)
    monkeypatch.setenv("TOOLKIT_BASE_URL", echo_address)
    said = ""
    for command in (["info", '{"type": "meta"}'], ["fetch", "userFills", USER], ["fetch", "meta"]):
        result = CliRunner().invoke(app, command)
        said += result.output + repr(result.exception)
    said += caplog.text + "".join(capfd.readouterr())
    assert "receive_response_headers" in said
    assert "x-echo" in said
    assert PLAIN not in said
