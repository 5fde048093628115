from pathlib import Path

import pytest

from toolkit.service import Key, KeysUnreadable, read_keys

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


def test_a_keys_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(GOOD)
    assert read_keys(file) == [
        Key("all", "one", "all", None),
        Key("some", "two", frozenset({"currentDepth"}), 5000),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no"),
        ("key = 5", "has no"),
        ("key = [5]", "is no table"),
        ("[[key", "is no TOML"),
        ("[[key]]\nname = 'a'", "secret must be"),
        ("[[key]]\nsecret = ''", "secret must be"),
        ("[[key]]\nsecret = 'hush'\npoints = 5", "there is no setting points"),
        ("[[key]]\nsecret = 'hush'\npoints_per_minute = 0", "points_per_minute must be"),
        ("[[key]]\nsecret = 'hush'\nadd_ons = ['meta']", "add_ons must be"),
        ("[[key]]\nsecret = 'hush'\nname = 5", "name must be"),
        ("[[key]]\nsecret = 'hush'\n[[key]]\nsecret = 'hush'", "same secret"),
    ],
)
def test_a_keys_file_that_says_something_else(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(KeysUnreadable, match=message) as caught:
        read_keys(file)
    assert "hush" not in str(caught.value)


def test_a_keys_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(KeysUnreadable, match="No such file"):
        read_keys(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(KeysUnreadable, match="no TOML"):
        read_keys(tmp_path / "bytes.toml")
