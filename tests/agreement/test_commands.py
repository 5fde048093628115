"""Every command line that the documents print is one that the command line takes."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from toolkit.cli import app

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "Makefile", *(ROOT / "docs").glob("*.md")]


def told(text: str) -> list[str]:
    """Give the command lines of a page: whole lines, and spans of code in its prose."""
    lines = re.findall(r"^(?:\t@\.venv/bin/)?(toolkit .*)", text, re.MULTILINE)
    spans = re.findall(r"`(toolkit [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    return [*lines, *(" ".join(one.split()) for one in spans if "|" not in one)]


LINES = sorted({line for page in PAGES for line in told((ROOT / page).read_text())})


@pytest.mark.parametrize("line", LINES)
def test_the_command_and_its_options_are_there(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    command = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands
        command = command.commands[words.pop(0)]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert {one for one in words if re.match("--?[a-z]", one)} <= options | {"--help"}


def test_there_are_some() -> None:
    assert len(LINES) > 20
