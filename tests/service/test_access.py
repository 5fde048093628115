import base64
import hashlib

import pytest

from toolkit.contract.operations import OPERATIONS
from toolkit.errors import InvalidKey, RateLimited
from toolkit.service import AcceptedKey, KeyQuotas, KeysUnreadable, read_keys

HASH = hashlib.sha256(b"hush").hexdigest()
GOOD = """
[[key]]
name = "all"
secret = "one"
add_ons = "all"

[[key]]
name = "some"
secret = "two"
add_ons = ["currentDepth"]
points_per_minute = 5000
"""
HUSH = "[[key]]\nsecret = 'hush'\n"


def test_keys_file_becomes_keys(tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(GOOD)
    assert read_keys(file) == [
        AcceptedKey("all", "one", "all", None),
        AcceptedKey("some", "two", frozenset({"currentDepth"}), 5000),
    ]


def test_invalid_keys_file_is_refused(tmp_path):
    table = [
        (b"", "has no"),
        (b"key = 5", "has no"),
        (b"key = [5]", "key 1"),
        (b"[[key", "not TOML"),
        (b"\xff\xfe", "not TOML"),
        (b"[[key]]\nname = 'a'", "secret"),
        (b"[[key]]\nsecret = ''", "secret must"),
        (HUSH + "points = 5", "points"),
        (HUSH + "points_per_minute = 0", "points_per_minute"),
        (HUSH + "add_ons = ['meta']", "add_ons"),
        (HUSH + "name = 5", "name"),
        (HUSH * 2, "same secret"),
        (HUSH + "secret_sha256 = ''", "secret_sha256"),
        (b"[[key]]\nsecret_sha256 = 'hush'", "secret_sha256"),
        (f"{HUSH}[[key]]\nsecret_sha256 = '{HASH}'", "same secret"),
    ]
    file = tmp_path / "keys.toml"
    for text, named in table:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(KeysUnreadable, match=named) as caught:
            read_keys(file)
        assert "hush" not in str(caught.value)
    with pytest.raises(KeysUnreadable, match=r"none\.toml"):
        read_keys(tmp_path / "none.toml")


def test_hashed_key_accepts_its_secret(tmp_path):
    file = tmp_path / "keys.toml"
    for digest in (HASH, HASH.upper()):
        file.write_text(f'[[key]]\nname = "mine"\nsecret_sha256 = "{digest}"')
        access = KeyQuotas(read_keys(file))
        assert access.find_key({"authorization": "Bearer hush"}).name == "mine"
        for wrong in (digest, "", "other"):
            with pytest.raises(InvalidKey):
                access.find_key({"authorization": f"Bearer {wrong}"})


def test_repr_hides_secrets():
    assert "s3cret" not in repr(AcceptedKey("mine", "s3cret"))
    assert "s3cret" not in repr(KeyQuotas([AcceptedKey("mine", "s3cret")]))


def wait_for(access, type, at_ms):
    """Return the seconds to wait if a request of the only key is refused, else None."""
    key = access.find_key({"x-api-key": "secret"})
    try:
        access.charge(key, 2, at_ms=at_ms, operation=OPERATIONS[type])
    except RateLimited as error:
        return error.retry_after
    return None


def test_snapshots_have_own_limit():
    """Five calls in ten minutes for each operation; docs/live_service.md, section 8."""
    access = KeyQuotas([AcceptedKey("desk", "secret", points_per_minute=5_000)])
    times = [0, 1_000, 2_000, 3_000, 300_000]
    assert [wait_for(access, "perpTwapSnapshots", at) for at in times] == [None] * 5
    assert wait_for(access, "perpTwapSnapshots", 300_500) == 300
    assert wait_for(access, "perpTwapSnapshots", 599_999) == 1
    assert wait_for(access, "accountValueSnapshots", 599_999) is None  # a count of its own
    assert wait_for(access, "perpTwapSnapshotTimestamp", 599_999) is None  # no limit
    assert wait_for(access, "perpTwapSnapshots", 600_000) is None  # the first call is too old
    assert wait_for(access, "perpTwapSnapshots", 600_000) == 1  # the second call is not
    unlimited = KeyQuotas([AcceptedKey("mine", "secret")])
    assert [wait_for(unlimited, "perpTwapSnapshots", 0) for _ in range(20)] == [None] * 20


def test_refused_snapshot_costs_nothing():
    key = AcceptedKey("desk", "secret", points_per_minute=12)
    access = KeyQuotas([key])
    assert [wait_for(access, "perpTwapSnapshots", 0) for _ in range(5)] == [None] * 5
    assert wait_for(access, "perpTwapSnapshots", 1) == 600
    access.charge(key, 2, at_ms=1)  # the refused call costs nothing: ten of twelve points are spent


def test_basic_password_is_a_key():
    """Clients that set no header send the password of an address (section 9)."""

    def basic(text):
        return "Basic " + base64.b64encode(text.encode()).decode()

    access = KeyQuotas([AcceptedKey("first", "one"), AcceptedKey("second", "two")])
    headers = [
        {"authorization": basic("key:one")},
        {"authorization": basic(":one")},
        {"authorization": basic("two:one").replace("Basic", "bAsIc")},
        {"authorization": basic("key:wrong"), "x-api-key": "one"},
    ]
    assert {access.find_key(header).name for header in headers} == {"first"}
    wrong = [basic("one"), basic("one:"), basic("one:wrong"), "Basic", "Basic one", "Basic /w=="]
    for header in wrong:
        with pytest.raises(InvalidKey):
            access.find_key({"authorization": header})
