"""What commands print on stderr after an error, and their exit codes."""

import errno

import pytest
import typer

from toolkit.cli.console import disk_message, plain_message, report_errors
from toolkit.errors import NotConnected, ToolkitError


def test_error_sets_exit_code(capsys):
    for error, code, message in (
        (ValueError("the limit is 0"), 2, "the limit is 0"),
        (ToolkitError("no answer; tk.describe() lists all"), 1, "toolkit fetch --help"),
        (NotConnected("no session. Call tk.connect()"), 2, "--base-url"),
        (OSError(errno.ENOENT, "gone", "a.csv"), 1, "a.csv: gone"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ):
        with pytest.raises(typer.Exit) as ended, report_errors():
            raise error
        assert ended.value.exit_code == code
        assert message in capsys.readouterr().err


def test_disk_message_names_file():
    assert disk_message(OSError("no device")) == "no device"
    assert disk_message(OSError(errno.ENOSPC, "full")) == "cannot write the output: full"
    denied = OSError(errno.EACCES, "denied", "a.csv")
    assert disk_message(denied) == "cannot read or write a.csv: denied"


def test_message_uses_option_names():
    wrong = [
        message
        for message, plain in {
            "stopped [error.rows has 5 rows]": "stopped",
            "stopped [error.rows has 5 rows; continue with cursor=12:3]": (
                "stopped [continue with --cursor 12:3]"
            ),
            "it needs the argument user, start_time": "it needs --user, --start-time",
            "id is the argument order_id of the fetch function": "The option is --order-id",
        }.items()
        if plain_message(message) != plain
    ]
    assert wrong == []
