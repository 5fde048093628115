"""Sessions: requests, retries, and the key that is never shown."""

import gc
import json
import pickle
import traceback

import httpx
import pytest
import stamina

import toolkit as tk
from toolkit.client import connect, forget
from toolkit.client.budget import Budget
from toolkit.client.wire import LARGEST_JSON
from toolkit.contract.operations import OPERATIONS

CANARY = "canary-7f3a-secret-key"
META = OPERATIONS["meta"]


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


def session_of(handler, **options):
    return connect(
        "https://service.example/",
        CANARY,
        transport=httpx.MockTransport(handler),
        default=False,
        **options,  # type: ignore[arg-type]
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
    seen: list[httpx.Request] = []

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


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, tk.BadRequest),
        (401, tk.InvalidKey),
        (403, tk.NotPermitted),
        (404, tk.ServiceError),
        (413, tk.ServiceError),
        (501, tk.ServiceError),
    ],
)
def test_permanent_errors_are_not_retried(status, error):
    session = session_of(answers_in_turn((status, {"error": "words of the service"})))
    with pytest.raises(error, match="words of the service") as caught:
        tk.meta(session=session)
    assert (caught.value.status, caught.value.operation) == (status, "meta")
    assert session.counts.requests == 1


@pytest.mark.parametrize(
    "failure",
    [
        (500, {"error": "An internal error occurred"}),
        (502, {"error": "Timeout error"}),
        (429, {"error": "Rate limit exceeded"}),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
    ],
)
def test_temporary_failures_are_retried(failure):
    session = session_of(answers_in_turn(failure, failure, (200, UNIVERSE)))
    assert tk.meta(session=session)["name"].tolist() == ["BTC"]
    assert (session.counts.requests, session.counts.retries) == (3, 2)
    assert session.counts.points == 6


@pytest.mark.parametrize(
    "operation_name", ["borrowLendUserState", "userFills", "perpTwapSnapshots"]
)
def test_error_with_status_200_is_raised(operation_name):
    session = session_of(answers_in_turn((200, {"error": "No\x07 such\nuser"})))
    operation = OPERATIONS[operation_name]
    with pytest.raises(tk.ServiceError, match="No such user") as caught:
        session.ask(operation, {"type": operation.type})
    assert (type(caught.value), caught.value.status) == (tk.ServiceError, 200)
    assert session.counts.requests == 1


@pytest.mark.parametrize("words", ["Rate limit exceeded", "Too many requests", "rate-limited"])
def test_rate_limit_with_status_200_is_retried(words):
    session = session_of(answers_in_turn((200, {"error": words}), (200, UNIVERSE)))
    facts = tk.provenance(tk.meta(session=session))
    assert facts["retries"] == {"rate limit": 1}


@pytest.mark.parametrize("answer", [{"error": "x", "name": "y"}, {"error": None}, [], {}, "error"])
def test_answer_with_other_content_is_no_error(answer):
    session = session_of(answers_in_turn((200, answer)))
    assert tk.info({"type": "newOperation"}, session=session) == answer


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        ((500, {"error": "An internal error occurred"}), tk.ServiceDown),
        ((429, {"error": "Rate limit exceeded"}), tk.RateLimited),
        (httpx.ConnectError("refused"), tk.Unreachable),
    ],
)
def test_lasting_failure_is_raised(failure, error):
    session = session_of(answers_in_turn(failure))
    with pytest.raises(error):
        tk.meta(session=session)
    assert session.counts.requests == 4


def test_rate_limit_error_has_retry_after():
    def handler(request):
        return httpx.Response(429, json={"error": "slow down"}, headers={"Retry-After": "7"})

    with pytest.raises(tk.RateLimited) as caught:
        tk.meta(session=session_of(handler))
    assert caught.value.retry_after == 7.0


def test_key_is_never_shown():
    echo = answers_in_turn((500, {"error": f"bad key {CANARY}"}))
    refused = answers_in_turn(httpx.ConnectError(f"refused, key {CANARY}"))
    shown = [repr(session_of(echo)), str(vars(session_of(echo)))]
    for handler in (echo, refused):
        session = session_of(handler)
        with pytest.raises(tk.ToolkitError) as caught:
            tk.meta(session=session)
        error = caught.value
        shown += [str(error), repr(error), repr(session), repr(session.client.auth)]
        shown += traceback.format_exception(error)
        shown += [pickle.dumps(error).decode("latin1"), repr(vars(error))]
    frame = tk.meta(session=session_of(answers_in_turn((200, UNIVERSE))))
    shown += [repr(frame.attrs), repr(tk.provenance(frame))]
    assert not [text for text in shown if CANARY in text]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        (f"htp://user:{CANARY}@host", None),
        (f"https://host/#{CANARY}", None),
        (f"https://host/?key={CANARY}", None),
        ("nothing", CANARY),
        ("https://host", f"{CANARY}é"),
    ],
)
def test_connection_error_hides_key(address, key):
    with pytest.raises(ValueError, match=r".") as caught:
        connect(address, key, points_per_minute=0, default=False)
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame for frame in trace.stack if "toolkit/client" in frame.filename]
    assert ours
    assert CANARY not in str(caught.value)
    if key is not None:
        assert not [frame for frame in ours if CANARY in str(frame.locals)]


def test_unreachable_error_has_no_request():
    session = session_of(answers_in_turn(httpx.ConnectError("refused")))
    with pytest.raises(tk.Unreachable) as caught:
        tk.meta(session=session)
    assert caught.value.__context__ is None or "httpx" not in repr(caught.value.__context__)
    with pytest.raises(TypeError):
        pickle.dumps(session.key)


def test_missing_local_service_has_advice():
    session = tk.connect("http://127.0.0.1:9", default=False)
    with pytest.raises(tk.Unreachable, match="start one with toolkit serve") as caught:
        tk.meta(session=session)
    assert caught.value.has_no_service


def test_failed_handshake_is_not_missing_service():
    failure = httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number")
    transport = httpx.MockTransport(answers_in_turn(failure))
    session = connect("https://127.0.0.1:9", transport=transport, default=False)
    with pytest.raises(tk.Unreachable, match="Check the address and the network"):
        tk.meta(session=session)


def test_answered_service_is_not_called_missing():
    answers = answers_in_turn((200, UNIVERSE), httpx.ConnectError("refused"))
    session = connect("http://127.0.0.1:9", transport=httpx.MockTransport(answers), default=False)
    tk.meta(session=session)
    with pytest.raises(tk.Unreachable, match="Check the address and the network") as caught:
        tk.meta(session=session)
    assert not caught.value.has_no_service


def test_invalid_address_or_key_is_refused():
    for wrong in ("service.example", "ftp://service.example", "https://"):
        with pytest.raises(ValueError, match="is not an address"):
            connect(wrong, default=False)
    with pytest.raises(ValueError, match="Pass the key as api_key"):
        connect(f"https://user:{CANARY}@service.example", default=False)
    for wrong in (f"{CANARY}\n", f" {CANARY} ", f"Bearer {CANARY}"):
        with pytest.raises(ValueError, match="printable ASCII text without spaces") as caught:
            connect("https://service.example", wrong, default=False)
        assert CANARY not in str(caught.value)
    for port in ("99999", "0", "x", "-1"):
        with pytest.raises(ValueError, match="its port cannot be used"):
            connect(f"https://service.example:{port}", default=False)
    for wrong in ("https://service. example", "https://service.example/\x00", "http://[::1"):
        with pytest.raises(ValueError, match="The address"):
            connect(wrong, default=False)
    for agent in ("é", "curl\n", 5):
        with pytest.raises(ValueError, match="user_agent must be printable"):
            connect("https://service.example", user_agent=agent, default=False)  # type: ignore[arg-type]
    assert connect("https://service.example/info/", default=False).base_url.endswith("example")


def test_spaces_around_address_are_removed():
    asked: list[str] = []

    def handler(request):
        asked.append(str(request.url))
        return httpx.Response(200, json=UNIVERSE)

    session = connect(
        " http://service.example:8787/ \n",
        transport=httpx.MockTransport(handler),
        default=False,
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


def test_malformed_request_is_not_sent():
    session = session_of(answers_in_turn((200, [])))
    with pytest.raises(tk.BadRequest, match="Invalid Ethereum address: 0x12"):
        tk.user_fills("0x12", session=session)
    with pytest.raises(ValueError, match="is not a time"):
        tk.user_fills_by_time("0x" + "1" * 40, "yesterday", session=session)
    with pytest.raises(tk.BadRequest, match="startTime parameter is required"):
        tk.user_fills_by_time("0x" + "1" * 40, session=session)
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        tk.user_fills("0x" + "1" * 40, numbers="double", session=session)  # type: ignore[arg-type]
    assert session.counts.requests == 0


@pytest.mark.parametrize("content", [b"", b"<html>", b"[{", b"{}", b"null", b"[" * 100_000])
def test_invalid_answer_names_operation(content):
    session = session_of(lambda request: httpx.Response(200, content=content))
    with pytest.raises(tk.AnswerInvalid, match="meta"):
        tk.meta(session=session)


class Clock:
    """A clock that moves only in sleeps."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_budget_delays_requests():
    clock = Clock()
    budget = Budget(100, None, clock=clock, sleep=clock.sleep)
    spent = []
    for _ in range(50):
        with budget.spend(10):
            pass
        spent.append(clock.now)
    for moment in spent:
        assert sum(10 for other in spent if moment <= other < moment + 60) <= 100
    assert clock.now == pytest.approx(100.0 + 4 * 60, abs=0.01)


def test_budget_refuses_large_requests():
    clock = Clock()
    budget = Budget(None, 25, clock=clock, sleep=clock.sleep)
    with budget.spend(10), budget.spend(10):
        pass
    with pytest.raises(tk.BudgetSpent, match="costs 10 points, and 5 of the session's 25"):
        budget.spend(10)
    assert budget.spent == 20
    with pytest.raises(tk.BudgetSpent, match="more than points_per_minute"):
        Budget(5, None, clock=clock, sleep=clock.sleep).spend(10)


def test_session_stops_at_most_points():
    session = session_of(answers_in_turn((200, UNIVERSE)), most_points=5)
    tk.meta(session=session)
    tk.meta(session=session)
    with pytest.raises(tk.BudgetSpent):
        tk.meta(session=session)
    assert session.counts.points == 4


def compressed_bomb(kind, size):
    """Return a small body that decompresses to `size` bytes of JSON."""
    import gzip

    import zstandard

    blank = b"[" + b" " * (size - 2) + b"]"
    return gzip.compress(blank, 9) if kind == "gzip" else zstandard.compress(blank, 3)


def streamed_answer(content, headers):
    """Return an answer whose body is read from the transport, as from a socket."""
    return httpx.Response(200, stream=httpx.ByteStream(content), headers=headers)


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("named", [True, False])
def test_decompression_bomb_is_refused(kind, named):
    import tracemalloc

    content = compressed_bomb(kind, LARGEST_JSON + 10)
    assert len(content) < 2**20
    headers = {"Content-Encoding": kind} if named else {}
    session = session_of(lambda request: streamed_answer(content, headers))
    tracemalloc.start()
    try:
        with pytest.raises(tk.AnswerInvalid, match="longer than the limit"):
            tk.user_fills("0x" + "1" * 40, session=session)
        assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST_JSON
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_compressed_answers_are_read(kind):
    content = compressed_bomb(kind, 10_000)
    headers = {"Content-Encoding": kind}
    session = session_of(lambda request: streamed_answer(content, headers))
    assert len(tk.user_fills("0x" + "1" * 40, session=session)) == 0


def test_damaged_compression_is_error():
    for kind in ("gzip", "zstd"):
        content = compressed_bomb(kind, 10_000)[:-5]
        session = session_of(lambda request, body=content: streamed_answer(body, {}))
        with pytest.raises(tk.AnswerInvalid, match=r"ends too early|ends after|damaged"):
            tk.user_fills("0x" + "1" * 40, session=session)


def test_answer_with_cut_checksum_is_refused():
    """The library returns the content of a zstd frame whose checksum is cut."""
    import zstandard

    content = zstandard.ZstdCompressor(write_checksum=True).compress(b"[]")
    for length in range(1, 5):
        session = session_of(lambda request, body=content[:-length]: streamed_answer(body, {}))
        with pytest.raises(tk.AnswerInvalid, match="ends too early"):
            tk.user_fills("0x" + "1" * 40, session=session)


def test_closed_session_is_not_default():
    forget()
    with connect(
        "http://service.test",
        transport=httpx.MockTransport(answers_in_turn((200, UNIVERSE))),
    ) as session:
        assert tk.meta()["name"].tolist() == ["BTC"]
    with pytest.raises(
        tk.NotConnected, match="the session was closed, and the environment names no address"
    ):
        tk.meta()
    with pytest.raises(tk.NotConnected, match="this session is closed"):
        tk.meta(session=session)
    forget()
    with pytest.raises(tk.NotConnected, match=r"^there is no address. Call tk.connect"):
        tk.meta()


def test_missing_key_has_hint(monkeypatch):
    monkeypatch.delenv("TOOLKIT_API_KEY", raising=False)
    refusal = httpx.MockTransport(lambda _: httpx.Response(401, json={"error": "Invalid API key"}))
    for key, hint in ((None, "There is no key: set TOOLKIT_API_KEY"), ("x", "Check TOOLKIT_API")):
        session = connect("http://service.test", key, transport=refusal, default=False)
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
    recipe = tk.connect("http://127.0.0.1:1", "a-secret-key", default=False).recipe
    gc.collect()
    assert recipe is not None
    with pytest.raises(tk.NotConnected, match="Set TOOLKIT_API_KEY in the environment"):
        recipe.get_session()
