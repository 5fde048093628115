"""Sessions: requests, retries, and the key that is never shown."""

import gc
import gzip
import json
import pickle
import traceback
import tracemalloc

import httpx
import pytest
import stamina
import zstandard

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import connect, forget, open_session
from toolkit.client.wire import LARGEST_JSON
from toolkit.contract.operations import OPERATIONS

CANARY = "canary-7f3a-secret-key"


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


def session_of(handler, **options):
    return open_session(
        "https://service.example/",
        CANARY,
        transport=httpx.MockTransport(handler),
        default=False,
        **options,
    )


def answers_in_turn(*answers):
    """Return a transport that gives these answers in turn, the last one forever."""
    left = list(answers)

    def handler(request):
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        return httpx.Response(status, json=content)

    return handler


UNIVERSE = {"universe": [{"name": "BTC", "szDecimals": 5, "maxLeverage": 50}]}


def test_request_has_key_and_user_agent():
    seen = []

    def handler(request):
        seen.append(request)
        return httpx.Response(200, json=UNIVERSE)

    tk.meta(session=session_of(handler))
    (request,) = seen
    assert (request.method, str(request.url)) == ("POST", "https://service.example/info")
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("exchange-toolkit/")
    assert json.loads(request.content) == {"type": "meta", "dex": ""}


PERMANENT = {
    **{400: tk.BadRequest, 401: tk.InvalidKey, 403: tk.NotPermitted},
    **dict.fromkeys((404, 413, 501), tk.ServiceError),
}


def test_permanent_errors_are_not_retried():
    for status, error in PERMANENT.items():
        session = session_of(answers_in_turn((status, {"error": "words of the service"})))
        with pytest.raises(error, match="words of the service") as caught:
            tk.meta(session=session)
        assert (caught.value.status, caught.value.operation) == (status, "meta")
        assert session.counts.requests == 1


TEMPORARY = [
    ((500, {"error": "An internal error occurred"}), tk.ServiceDown),
    ((502, {"error": "Timeout error"}), tk.ServiceDown),
    ((429, {"error": "Rate limit exceeded"}), tk.RateLimited),
    (httpx.ConnectError("refused"), tk.Unreachable),
    (httpx.ReadTimeout("slow"), tk.Unreachable),
    (httpx.RemoteProtocolError("cut"), tk.Unreachable),
]


def test_temporary_failures_are_retried():
    for failure, error in TEMPORARY:
        session = session_of(answers_in_turn(failure, failure, (200, UNIVERSE)))
        assert tk.meta(session=session)["name"].tolist() == ["BTC"]
        counts = session.counts
        assert (counts.requests, counts.retries, counts.points) == (3, 2, 6)
        session = session_of(answers_in_turn(failure))
        with pytest.raises(error):
            tk.meta(session=session)
        assert session.counts.requests == 4


def test_error_with_status_200_is_raised():
    for name in ("borrowLendUserState", "userFills", "perpTwapSnapshots"):
        session = session_of(answers_in_turn((200, {"error": "No\x07 such\nuser"})))
        with pytest.raises(tk.ServiceError, match="No such user") as caught:
            session.ask(OPERATIONS[name], {"type": name})
        assert (type(caught.value), caught.value.status) == (tk.ServiceError, 200)
        assert session.counts.requests == 1
    for words in ("Rate limit exceeded", "Too many requests", "rate-limited"):
        session = session_of(answers_in_turn((200, {"error": words}), (200, UNIVERSE)))
        assert tk.provenance(tk.meta(session=session))["retries"] == {"rate limit": 1}
    for answer in ({"error": "x", "name": "y"}, {"error": None}, [], {}, "error"):
        session = session_of(answers_in_turn((200, answer)))
        assert tk.info({"type": "newOperation"}, session=session) == answer


def test_connection_error_hides_key():
    for address, key in (
        (f"htp://user:{CANARY}@host", None),
        (f"https://host/#{CANARY}", None),
        (f"https://host/?key={CANARY}", None),
        ("nothing", CANARY),
        ("https://host", f"{CANARY}é"),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            connect(address, key, points_per_minute=0, default=False)
        trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        ours = [frame for frame in trace.stack if "toolkit/client" in frame.filename]
        assert ours
        assert CANARY not in str(caught.value)
        assert key is None or not [frame for frame in ours if CANARY in str(frame.locals)]


def test_unreachable_error_has_no_request():
    session = session_of(answers_in_turn(httpx.ConnectError("refused")))
    with pytest.raises(tk.Unreachable) as caught:
        tk.meta(session=session)
    assert caught.value.__context__ is None or "httpx" not in repr(caught.value.__context__)
    with pytest.raises(TypeError):
        pickle.dumps(session.key)


def test_missing_local_service_has_advice():
    session = tk.connect("http://127.0.0.1:9", default=False)
    with pytest.raises(tk.Unreachable, match="toolkit serve") as caught:
        tk.meta(session=session)
    assert caught.value.has_no_service


def test_other_failures_are_no_missing_service():
    """A handshake that fails, and a service that has answered before."""
    handshake = httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number")
    for address, *answers in (
        ("https://127.0.0.1:9", handshake),
        ("http://127.0.0.1:9", (200, UNIVERSE), httpx.ConnectError("refused")),
    ):
        transport = httpx.MockTransport(answers_in_turn(*answers))
        session = open_session(address, transport=transport)
        for _ in answers[1:]:
            tk.meta(session=session)
        with pytest.raises(tk.Unreachable, match="address and the network") as caught:
            tk.meta(session=session)
        assert not caught.value.has_no_service


SERVICE = "https://service.example"
INVALID = {
    # words of the error -> (address, key, user agent)
    "is not an address": [(address, None, None) for address in ("a.test", "ftp://a", "https://")],
    "api_key": [(f"https://user:{CANARY}@service.example", None, None)],
    "port": [(f"{SERVICE}:{port}", None, None) for port in ("99999", "0", "x", "-1")],
    "address": [(f"http{rest}", None, None) for rest in ("s://a. b", "s://a/\x00", "://[::1")],
    "ASCII": [(SERVICE, key, None) for key in (f"{CANARY}\n", f" {CANARY} ", f"Bearer {CANARY}")],
    "user_agent": [(SERVICE, None, agent) for agent in ("é", "curl\n", 5)],
}


def test_invalid_address_or_key_is_refused():
    for words, arguments in INVALID.items():
        for address, key, agent in arguments:
            with pytest.raises(ValueError, match=words) as caught:
                connect(address, key, user_agent=agent, default=False)
            assert CANARY not in str(caught.value)
    assert connect(f"{SERVICE}/info/", default=False).base_url.endswith("example")


def test_spaces_around_address_are_removed():
    asked = []

    def handler(request):
        asked.append(str(request.url))
        return httpx.Response(200, json=UNIVERSE)

    session = open_session(
        " http://service.example:8787/ \n", transport=httpx.MockTransport(handler), default=False
    )
    tk.meta(session=session)
    assert asked == ["http://service.example:8787/info"]


def test_call_without_address_has_advice():
    forget()
    with pytest.raises(tk.NotConnected, match=r"tk\.connect.*TOOLKIT_BASE_URL.*tk\.local"):
        tk.meta()


def test_connect_reads_address_and_key_from_environment(monkeypatch):
    monkeypatch.setenv("TOOLKIT_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
    assert repr(connect(default=False)).startswith("<Session http://127.0.0.1:1, with key")


def compressed_bomb(kind, size):
    """Return a small body that decompresses to `size` bytes of JSON."""
    blank = b"[" + b" " * (size - 2) + b"]"
    return gzip.compress(blank, 9) if kind == "gzip" else zstandard.compress(blank, 3)


def streamed_answer(content, headers):
    """Return an answer whose body is read from the transport, as from a socket."""
    return httpx.Response(200, stream=httpx.ByteStream(content), headers=headers)


@pytest.mark.parametrize(
    ("kind", "headers"), [("gzip", {"Content-Encoding": "gzip"}), ("zstd", {})]
)
def test_decompression_bomb_is_refused(kind, headers):
    content = compressed_bomb(kind, LARGEST_JSON + 10)
    assert len(content) < 2**20
    session = session_of(lambda request: streamed_answer(content, headers))
    tracemalloc.start()
    try:
        with pytest.raises(tk.AnswerInvalid, match="limit"):
            tk.user_fills("0x" + "1" * 40, session=session)
        assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST_JSON
    finally:
        tracemalloc.stop()


def test_compressed_answers_are_read_or_refused():
    wrong = []
    for kind in ("gzip", "zstd"):
        content = compressed_bomb(kind, 10_000)
        for headers in ({}, {"Content-Encoding": kind}):
            session = session_of(lambda _, args=(content, headers): streamed_answer(*args))
            assert len(tk.user_fills("0x" + "1" * 40, session=session)) == 0
        wrong.append(content[:-5])
    for content in wrong:
        session = session_of(lambda request, body=content: streamed_answer(body, {}))
        with pytest.raises(tk.AnswerInvalid, match=r"ends|damaged"):
            tk.user_fills("0x" + "1" * 40, session=session)


def test_closed_session_is_not_default():
    forget()
    with session_over(answers_in_turn((200, UNIVERSE)), default=True) as session:
        assert tk.meta()["name"].tolist() == ["BTC"]
    with pytest.raises(tk.NotConnected, match="session was closed"):
        tk.meta()
    with pytest.raises(tk.NotConnected, match="closed"):
        tk.meta(session=session)
    forget()
    with pytest.raises(tk.NotConnected, match=r"tk\.connect"):
        tk.meta()


def test_missing_key_has_hint(monkeypatch):
    monkeypatch.delenv("TOOLKIT_API_KEY", raising=False)
    refusal = httpx.MockTransport(lambda _: httpx.Response(401, json={"error": "Invalid API key"}))
    for key, hint in ((None, "There is no key: set TOOLKIT_API_KEY"), ("x", "Check TOOLKIT_API")):
        session = open_session("http://service.test", key, transport=refusal)
        with pytest.raises(tk.InvalidKey, match=rf"^meta: Invalid API key \(status 401\)\. {hint}"):
            tk.meta(session=session)


def test_recipe_makes_session_once():
    recipe = tk.local(seed=7, size="tiny", default=False).recipe
    gc.collect()  # nobody has the first session any more, as in another process
    assert recipe is not None
    made = recipe.get_session()
    assert made.label == "simulated, seed 7, size tiny"
    assert recipe.get_session() is made


def test_recipe_needs_key_of_environment(monkeypatch):
    monkeypatch.delenv("TOOLKIT_API_KEY", raising=False)
    monkeypatch.setenv("HYDROMANCER_API_KEY", "another")  # not for this address
    recipe = tk.connect("http://127.0.0.1:1", "a-secret-key", default=False).recipe
    gc.collect()
    assert recipe is not None
    with pytest.raises(tk.NotConnected, match="Set TOOLKIT_API_KEY in the environment"):
        recipe.get_session()
