"""The exchange's own API, as a model of it: docs/live_service.md, sections 12 to 15."""

import json
from collections import deque

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import fill
from toolkit.archive.coverage import complete_ranges, read_log
from toolkit.client import open_session
from toolkit.contract.apis import EXCHANGE, SERVICE

USER = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
SECRET = "a-secret-of-the-user"
NOW = 1_760_000_000_000
EVERY = 60_000  # milliseconds between two fills
HOUR = 3_600_000
REACH = 10_000
ACCEPTED = {
    "userFills": {"type", "user", "aggregateByTime"},
    "userFillsByTime": {"type", "user", "startTime", "endTime", "aggregateByTime"},
    "userFunding": {"type", "user", "startTime", "endTime"},
    "meta": {"type", "dex"},
}
META = {"universe": [{"name": "BTC", "szDecimals": 5, "maxLeverage": 40}]}


class Exchange:
    """A model of the API: fixed pages, the latest fills of an account, weights, no key.

    It refuses what exceeds its quota in any minute of its clock, with a 429 without a body.
    """

    def __init__(self, fills=(), quota=10**9, now_ms=NOW):
        self.fills = list(fills)
        self.quota = quota
        self.now_ms = now_ms
        self.seconds = 0.0
        self.bodies = []
        self.recent = deque()
        self.weight = self.refused = 0

    @property
    def kept(self):
        return self.fills[-REACH:]

    def rows(self, body):
        start, end = body.get("startTime", 0), body.get("endTime", self.now_ms)
        if body["user"] == OTHER:
            return []
        if body["type"] == "userFills":
            return self.kept[:-2_001:-1]
        if body["type"] == "userFunding":
            return [row for row in FUNDING if start <= row["time"] <= end][:500]
        rows = [row for row in self.kept if start <= row["time"] <= end]
        if body.get("aggregateByTime"):  # of two fills of a time the first stands for both
            rows = [
                row for i, row in enumerate(rows) if not i or row["time"] != rows[i - 1]["time"]
            ]
        return rows[:2_000]

    def answer(self, request):
        body = json.loads(request.content)
        self.bodies.append(body)
        assert SECRET not in repr(request.headers.raw) + repr(body)
        assert not {"authorization", "x-api-key"} & request.headers.keys()
        assert body.keys() <= ACCEPTED[body["type"]]
        while self.recent and self.recent[0][0] <= self.seconds - 60:
            self.recent.popleft()
        if sum(weight for _, weight in self.recent) + 20 > self.quota:
            self.refused += 1
            return httpx.Response(429)
        answer = META if body["type"] == "meta" else self.rows(body)
        weight = 20 + (-(-len(answer) // 20) if body["type"] != "meta" else 0)
        self.recent.append((self.seconds, weight))
        self.weight += weight
        assert sum(weight for _, weight in self.recent) <= self.quota
        return httpx.Response(200, json=answer)

    def sleep(self, seconds):
        self.seconds += seconds

    def session(self, **options):
        return open_session(
            "http://stand-in.test",
            api="hyperliquid",
            transport=httpx.MockTransport(self.answer),
            now_ms=lambda: self.now_ms,
            clock=lambda: self.seconds,
            sleep=self.sleep,
            **options,
        )


def fills_until(now_ms, count):
    """Return fills until a time; each third one has the time of the one before."""
    rows = [fill(now_ms - EVERY * (count - i + i % 3 // 2), tid=i + 1) for i in range(count)]
    for row in rows:
        del row["txIndex"], row["twapId"]
    return rows


FUNDING = [
    {"time": NOW - HOUR * (1_234 - i), "hash": "0x" + "0" * 64,
     "delta": {"type": "funding", "coin": "BTC", "usdc": "-0.1", "szi": "1.0",
               "fundingRate": "0.0000125", "nSamples": None}}
    for i in range(1_234)
]  # fmt: skip


def state(frame):
    return tk.provenance(frame)["complete"]


def test_long_account_lacks_its_oldest_fills():
    exchange = Exchange(fills_until(NOW, 12_345))
    with exchange.session() as session:
        with pytest.raises(tk.Incomplete) as missing:
            tk.user_fills_by_time(USER, 0, session=session)
        assert session.counts.points == exchange.weight
    rows, first = missing.value.rows, exchange.kept[0]
    assert rows["tid"].tolist() == [row["tid"] for row in exchange.kept]
    assert state(rows) == "no"
    assert len(exchange.bodies) == 6
    # The fill before has the same time and is not kept, so that time is not complete.
    assert exchange.fills[-REACH - 1]["time"] == first["time"]
    with exchange.session() as session:
        with pytest.raises(tk.Incomplete):
            tk.user_fills_by_time(USER, first["time"], session=session)
        again = tk.user_fills_by_time(USER, first["time"] + 1, session=session)
    assert state(again) == "yes"
    assert again["tid"].tolist() == [row["tid"] for row in exchange.kept[1:]]


def test_exchange_behind_the_address_of_a_service_is_noticed():
    exchange = Exchange(fills_until(NOW, 12_345))

    def ignore_fields(request):
        body = json.loads(request.content)
        known = {name: body[name] for name in ACCEPTED[body["type"]] & body.keys()}
        return exchange.answer(httpx.Request("POST", request.url, json=known))

    transport = httpx.MockTransport(ignore_fields)
    session = open_session("http://a.test", SECRET, transport=transport, now_ms=lambda: NOW)
    for start, filters in ((0, {}), (NOW - HOUR, {"dex": "flx"}), (NOW - HOUR, {"builder": OTHER})):
        with pytest.raises(tk.Incomplete, match=next(iter(filters), "10,000")) as missing:
            tk.user_fills_by_time(USER, start, session=session, **filters)
        assert "exchange='hyperliquid'" in str(missing.value)
    assert state(tk.user_fills_by_time(USER, NOW - HOUR, session=session)) == "yes"


def test_requests_wait_for_quota_of_rows():
    exchange = Exchange(fills_until(NOW, 12_345), quota=1_200)
    with exchange.session(points_per_minute=1_200) as session:
        for _ in range(3):
            rows = tk.user_fills_by_time(USER, NOW - 9_000 * EVERY, session=session)
            assert state(rows) == "yes"
        assert session.counts.points == exchange.weight > 1_200
    assert exchange.refused == 0
    assert exchange.seconds > 60
    # Another program of this machine has used the quota up: wait, and ask again.
    exchange.recent.append((exchange.seconds, 1_200))
    with exchange.session() as session:
        with pytest.warns(tk.errors.LimitWarning):
            assert len(tk.user_fills(USER, session=session)) == 2_000
        assert session.counts.causes["429"] == exchange.refused > 0


@pytest.mark.parametrize("aggregate", [False, True])
def test_ranges_of_an_account(aggregate):
    exchange = Exchange(fills_until(NOW, 12_345))
    first_ms = exchange.kept[0]["time"]

    def pull(start, end=None, user=USER, **options):
        with exchange.session() as session:
            options["aggregate_by_time"] = aggregate
            return tk.user_fills_by_time(user, start, end, session=session, **options)

    end = NOW - 5_000 * EVERY
    past = pull(first_ms + 1, end)
    assert state(past) == "yes"
    times = [row["time"] for row in exchange.kept if first_ms < row["time"] <= end]
    assert past["time"].size == len(set(times) if aggregate else times)
    head = pull(first_ms + 1, max_rows=10)
    assert (len(head), state(head)) == (10, "first 10 rows")
    for options in ({"end": end}, {"max_rows": 10}, {"end": first_ms - 1}):
        with pytest.raises(tk.Incomplete):
            pull(0, **options)
    assert state(pull(0, first_ms, OTHER)) == "yes"  # an account without fills
    exchange = Exchange(fills_until(NOW, 1_799))
    assert len(pull(0)) == (1_200 if aggregate else 1_799)
    assert len(exchange.bodies) == (3 if aggregate else 1)
    exchange = Exchange(fills_until(NOW, 9_999))
    assert state(pull(0)) == "yes"
    exchange = Exchange(fills_until(NOW, 10_000))  # perhaps there was one more
    with pytest.raises(tk.Incomplete):
        pull(0)


def test_latest_fills_are_cut_here():
    exchange = Exchange(fills_until(NOW, 3_000))
    with exchange.session() as session:
        rows = tk.user_fills(USER, max_rows=10, session=session)
        assert rows["tid"].tolist() == list(range(3_000, 2_990, -1))
        assert (state(rows), len(tk.user_fills(USER, session=session))) == ("latest", 2_000)
        plan = tk.plan(tk.user_fills, USER, max_rows=10, session=session)
    assert (plan.rows, plan.requests, plan.points, plan.tokens) == (10, 1, 120, None)


def test_every_way_to_fetch():
    exchange = Exchange(fills_until(NOW, 12_345))
    begin = exchange.kept[0]["time"] + 1
    with exchange.session() as session:
        pages = list(tk.pages(tk.user_fills_by_time, USER, begin, session=session))
        assert sum(map(len, pages)) == REACH - 1
        assert state(pages[-1]) == "one page, the last"
        with pytest.warns(tk.errors.IncompleteWarning):
            *_, last = tk.pages(
                tk.user_fills_by_time, USER, 0, on_incomplete="warn", session=session
            )
        assert state(last) == "no"
        made = tk.plan(tk.user_fills_by_time, USER, begin, probe=True, session=session)
        before = exchange.weight, len(exchange.bodies)
        tk.user_fills_by_time(USER, begin, session=session)
        assert made.requests == len(exchange.bodies) - before[1]
        assert made.points == pytest.approx(exchange.weight - before[0], rel=0.02)
        many = tk.many(tk.user_fills_by_time, [USER, OTHER], begin, session=session)
        assert len(many) == REACH - 1
        funding = tk.user_funding(USER, 0, session=session)
        assert (len(funding), state(funding)) == (1_234, "yes")
        looks = tk.poll(tk.meta, tk.meta, rounds=2, wait=lambda _: None, session=session)
        assert [list(look["name"]) for look in looks] == [["BTC"]]
        assert tk.info({"type": "meta"}, session=session) == META


LACKING = [
    lambda s: tk.user_fills_by_time(USER, 0, builder=USER, session=s),
    lambda s: tk.user_fills_by_time(USER, 0, venue="abc", session=s),
    lambda s: tk.user_fills_by_time(USER, 0, dex="flx", session=s),
    lambda s: tk.user_fills_by_time(USER, 0, page_size=100, session=s),
    lambda s: tk.user_fills_by_time(USER, cursor="1_2", session=s),
    lambda s: tk.user_fills(USER, dex="flx", session=s),
    lambda s: tk.info({"type": "userFills", "user": USER, "limit": 5}, session=s),
    lambda s: tk.info({"type": "userFillsByTime", "user": USER, "startTime": 0,
                       "venue": "abc"}, session=s),
    lambda s: tk.plan(tk.user_fills_by_time, USER, 0, builder=USER, probe=True, session=s),
    lambda s: list(tk.pages(tk.user_fills_by_time, USER, 0, venue="abc", session=s)),
    lambda s: tk.slippage_history("BTC", 1_000, 0, session=s),
    lambda s: tk.batch_clearinghouse_states([USER], session=s),
    lambda s: tk.builder_orders_by_time(USER, 0, session=s),
    lambda s: tk.info({"type": "currentDepth"}, session=s),
]  # fmt: skip


@pytest.mark.parametrize("call", LACKING)
def test_what_the_exchange_lacks_is_not_sent(call):
    exchange = Exchange()
    with exchange.session() as session, pytest.raises(tk.errors.BadRequest) as refused:
        call(session)
    with exchange.session() as session, pytest.raises(tk.Incomplete):
        tk.many(tk.user_fills_by_time, [USER, OTHER], 0, builder=USER, session=session)
    assert SERVICE.title in str(refused.value).lower()
    assert refused.value.status is None
    assert not exchange.bodies


def test_refusal_in_plain_text():
    text = "Failed to deserialize the JSON body into the target type"
    transport = httpx.MockTransport(lambda _: httpx.Response(422, text=text))
    with (
        open_session("http://stand-in.test", api="hyperliquid", transport=transport) as session,
        pytest.raises(tk.errors.BadRequest, match=text),
    ):
        tk.info({"type": "newOperation", "colour": "red"}, session=session)


def test_damaged_rows_are_refused():
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=b'[{"time":1},}]'))
    with (
        open_session("http://stand-in.test", api="hyperliquid", transport=transport) as session,
        pytest.raises(tk.errors.AnswerInvalid),
    ):
        tk.user_fills(USER, session=session)


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("TOOLKIT_API_KEY", SECRET)
    monkeypatch.setenv("HYDROMANCER_API_KEY", SECRET + "2")
    monkeypatch.delenv("TOOLKIT_BASE_URL", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "address",
    [
        "hyperliquid",
        " Hyperliquid-Testnet",
        "https://api.hyperliquid.xyz",
        "https://API.Hyperliquid.xyz:443/info/",
        "http://api.hyperliquid.xyz.",
        "https://api.hyperliquid。xyz",
        "https://api-ui.hyperliquid.xyz",
        "https://api.hyperliquid-testnet.xyz:8443",
    ],
)
def test_no_key_for_the_exchange(keys, address):
    with tk.connect(address, default=False) as session:
        assert (session.key, session.api) == (None, EXCHANGE)
        assert session.budget.per_minute == 1_200
        assert session.recipe.arguments["api"] == "hyperliquid"
    for options in ({}, {"exchange": "hyperliquid"}, {"exchange": "hydromancer"}):
        with pytest.raises(ValueError, match="no key") as refused:
            tk.connect(address, SECRET, default=False, **options)
        assert SECRET not in str(refused.value)


def test_which_key_is_sent(keys):
    def key_at(address, **options):
        sent = []

        def answer(request):
            sent.append(request.headers.get("authorization"))
            return httpx.Response(200, json=META)

        options["transport"] = httpx.MockTransport(answer)
        with open_session(address, **options) as session:
            tk.info({"type": "meta"}, session=session)
        return sent[0] and sent[0].removeprefix("Bearer ")

    assert key_at("http://127.0.0.1:8787", api="hyperliquid") is None
    assert key_at("hydromancer") == key_at("https://elsewhere.test") == SECRET
    keys.delenv("TOOLKIT_API_KEY")
    assert key_at("hydromancer") == key_at("https://api-testnet.hydromancer.xyz/") == SECRET + "2"
    for address in (
        "https://elsewhere.test",
        "http://api.hydromancer.xyz",
        "https://api.hydromancer.xyz:8443",
        "https://api.hydromancer.xyz.elsewhere.test",
        "https://hydromancer.xyz",
        "https://api.hyperliquid.xyz",
    ):
        assert key_at(address) is None


@pytest.mark.parametrize("name", ["hyperlquid", "hyperliquid-moonnet", "-testnet"])
def test_unknown_names(keys, name):
    with pytest.raises(tk.NotConnected):
        tk.connect("https://elsewhere.test", exchange=name, default=False)
    with pytest.raises(ValueError, match="not an address"):
        tk.connect(name, default=False)


def test_archive_claims_nothing_that_the_exchange_does_not_keep(tmp_path):
    archive = tk.archive.open(tmp_path / "archive")

    def refresh(exchange, *times):
        with exchange.session() as session:
            return archive.refresh(tk.user_fills_by_time, USER, *times, session=session)

    def complete():
        log = read_log(archive.tables, None, "userFillsByTime")
        return complete_ranges(log["userFillsByTime", USER])

    exchange = Exchange(fills_until(NOW, 12_345))
    with pytest.warns(tk.errors.HistoryWarning):
        done = refresh(exchange)
    begin = exchange.kept[0]["time"] + 1
    assert (done.rows, complete()) == (REACH - 1, [(begin, NOW - 1)])
    for start, stated in ((None, "no"), (begin, "yes"), (begin - 1, "no")):
        rows = archive.frame(tk.user_fills_by_time, USER, start=start)
        assert tk.provenance(rows)["complete"] == stated
    # Later, but before the exchange has dropped the last archived row: no gap.
    later = Exchange(fills_until(NOW + 5_000 * EVERY, 17_345), now_ms=NOW + 5_000 * EVERY)
    done = refresh(later)
    assert (done.rows, done.total) == (5_000, REACH - 1 + 5_000)
    assert complete() == [(begin, later.now_ms - 1)]
    assert len(later.bodies) == 4
    # Much later, the rows after the last archived one are not kept: a new range begins.
    last = Exchange(fills_until(NOW + 20_000 * EVERY, 32_345), now_ms=NOW + 20_000 * EVERY)
    with pytest.warns(tk.errors.HistoryWarning):
        done = refresh(last)
    again = last.kept[0]["time"] + 1
    assert complete() == [(begin, later.now_ms - 1), (again, last.now_ms - 1)]
    for start in (None, begin, 0):
        with pytest.warns(tk.errors.HistoryWarning):
            assert refresh(last, start).rows == 0
    assert complete() == [(begin, later.now_ms - 1), (again, last.now_ms - 1)]
    rows = archive.frame(tk.user_fills_by_time, USER)
    assert rows["tid"].is_unique
    kept = [row["tid"] for row in last.kept if row["time"] >= again]
    assert rows["tid"].tolist() == [*range(2_347, 17_346), *kept]
