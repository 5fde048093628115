"""Every command in the docs exists, with its options."""

import re
import shlex
from pathlib import Path

import typer

from toolkit.cli import app

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "Makefile", *(ROOT / "docs").glob("*.md")]


def told(text):
    """Return the commands of a page: full lines, and code spans in its prose."""
    lines = re.findall(r"^(?:\t@\.venv/bin/)?(toolkit .*)", text, re.MULTILINE)
    spans = re.findall(r"`(toolkit [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    return [*lines, *(" ".join(span.split()) for span in spans if "|" not in span)]


def is_right(line, command):
    """Return whether the command of a line exists and has its options."""
    _, *words = shlex.split(line, comments=True)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return False
        command = command.commands[words.pop(0)]
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    return {word for word in words if re.match("--?[a-z]", word)} <= options | {"--help"}


def test_commands_and_options_exist():
    lines = sorted({line for page in PAGES for line in told((ROOT / page).read_text())})
    assert len(lines) > 20
    command = typer.main.get_command(app)
    assert [line for line in lines if not is_right(line, command)] == []
