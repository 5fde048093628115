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


def test_keys_file_becomes_keys(tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(GOOD)
    assert read_keys(file) == [
        AcceptedKey("all", "one", "all", None),
        AcceptedKey("some", "two", frozenset({"currentDepth"}), 5000),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no"),
        ("key = 5", "has no"),
        ("key = [5]", "is not a table"),
        ("[[key", "is not TOML"),
        ("[[key]]\nname = 'a'", "secret must be"),
        ("[[key]]\nsecret = ''", "secret must be"),
        ("[[key]]\nsecret = 'hush'\npoints = 5", "unknown setting points"),
        ("[[key]]\nsecret = 'hush'\npoints_per_minute = 0", "points_per_minute must be"),
        ("[[key]]\nsecret = 'hush'\nadd_ons = ['meta']", "add_ons must be"),
        ("[[key]]\nsecret = 'hush'\nname = 5", "name must be"),
        ("[[key]]\nsecret = 'hush'\n[[key]]\nsecret = 'hush'", "same secret"),
        ("[[key]]\nsecret = 'hush'\nsecret_sha256 = ''", "give either secret or secret_sha256"),
        ("[[key]]\nsecret_sha256 = 'hush'", "must be 64 hexadecimal digits"),
        (f"[[key]]\nsecret = 'hush'\n[[key]]\nsecret_sha256 = '{HASH}'", "same secret"),
    ],
)
def test_invalid_keys_file_is_refused(tmp_path, text, message):
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(KeysUnreadable, match=message) as caught:
        read_keys(file)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("digest", [HASH, HASH.upper()])
def test_hashed_key_accepts_its_secret(tmp_path, digest):
    file = tmp_path / "keys.toml"
    file.write_text(f'[[key]]\nname = "mine"\nsecret_sha256 = "{digest}"')
    access = KeyQuotas(read_keys(file))
    assert access.find_key({"authorization": "Bearer hush"}).name == "mine"
    for wrong in (digest, "", "other"):
        with pytest.raises(InvalidKey):
            access.find_key({"authorization": f"Bearer {wrong}"})


def test_unreadable_keys_file_is_refused(tmp_path):
    with pytest.raises(KeysUnreadable, match="No such file"):
        read_keys(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(KeysUnreadable, match="not TOML"):
        read_keys(tmp_path / "bytes.toml")


def refusal_of(access, key, type, at_ms):
    """Return the seconds to wait if a request is refused, else None."""
    try:
        access.charge(key, 2, at_ms=at_ms, operation=OPERATIONS[type])
    except RateLimited as error:
        return error.retry_after
    return None


def test_snapshots_have_own_limit():
    """Five calls in ten minutes for each operation; docs/live_service.md, section 8."""
    key = AcceptedKey("desk", "secret", points_per_minute=5_000)
    access = KeyQuotas([key])
    times = [0, 1_000, 2_000, 3_000, 300_000]
    assert [refusal_of(access, key, "perpTwapSnapshots", at) for at in times] == [None] * 5
    assert refusal_of(access, key, "perpTwapSnapshots", 300_500) == 300
    assert refusal_of(access, key, "perpTwapSnapshots", 599_999) == 1
    assert (
        refusal_of(access, key, "accountValueSnapshots", 599_999) is None
    )  # it has a count of its own
    assert refusal_of(access, key, "perpTwapSnapshotTimestamp", 599_999) is None  # no limit
    assert (
        refusal_of(access, key, "perpTwapSnapshots", 600_000) is None
    )  # the first call is ten minutes old
    assert refusal_of(access, key, "perpTwapSnapshots", 600_000) == 1  # the second call is not


def test_refused_snapshot_costs_nothing():
    key = AcceptedKey("desk", "secret", points_per_minute=12)
    access = KeyQuotas([key])
    for _ in range(5):
        access.charge(key, 2, at_ms=0, operation=OPERATIONS["perpTwapSnapshots"])
    assert refusal_of(access, key, "perpTwapSnapshots", 1) == 600
    access.charge(key, 2, at_ms=1)  # the refused call costs nothing: ten of twelve points are spent


def test_key_without_quota_has_no_limit():
    key = AcceptedKey("mine", "secret")
    access = KeyQuotas([key])
    assert [refusal_of(access, key, "perpTwapSnapshots", 0) for _ in range(20)] == [None] * 20


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": basic("key:one")},
        {"authorization": basic(":one")},
        {"authorization": basic("two:one").replace("Basic", "bAsIc")},
        {"authorization": basic("key:wrong"), "x-api-key": "one"},
    ],
)
def test_basic_password_is_a_key(headers):
    """Clients that set no header send the password of an address (section 9)."""
    assert (
        KeyQuotas([AcceptedKey("first", "one"), AcceptedKey("second", "two")])
        .find_key(headers)
        .name
        == "first"
    )


@pytest.mark.parametrize(
    "header", [basic("one"), basic("one:"), basic("one:wrong"), "Basic", "Basic one", "Basic /w=="]
)
def test_basic_without_key_is_refused(header):
    with pytest.raises(InvalidKey):
        KeyQuotas([AcceptedKey("first", "one")]).find_key({"authorization": header})
