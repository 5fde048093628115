"""The page of the command line as Markdown, made from the commands themselves."""

from collections.abc import Iterator
from typing import Any, Final

import typer

from toolkit.cli import app

__all__ = ["command_page"]

ABOUT: Final = """Every command prints its options with `--help`. Messages and progress go to
stderr, results to stdout. Exit codes: 0 done; 1 failed; 2 the command line is wrong; 3 rows are
missing; 130 interrupted."""


def command_page() -> str:
    """Return the page of all commands, each with its arguments and options."""
    return "\n\n".join(["# Command line", ABOUT, *_parts(typer.main.get_command(app), "toolkit")])


def _parts(command: Any, name: str) -> Iterator[str]:
    group = getattr(command, "commands", {})
    yield f"{'##' if name.count(' ') < 2 else '###'} {name}"
    yield _one_line(command.help or "")
    if not group:
        yield _usage(command, name)
    shared = _shared_options(group)
    own = [param for param in command.params if param.name != "help"]
    yield _options_table(own)
    if shared:
        yield f"Options of every `{name}` command:"
        yield _options_table(list(shared.values()))
    for inner, member in group.items():
        if not member.hidden:
            yield from _command_parts(member, f"{name} {inner}", shared)


def _command_parts(command: Any, name: str, shared: dict[str, Any]) -> Iterator[str]:
    """Yield a command without the options that its group has described."""
    for part in _parts(_Without(command, shared), name):
        if part:
            yield part


class _Without:
    """A command without the options that all commands of its group share."""

    def __init__(self, command: Any, shared: dict[str, Any]) -> None:
        self.help, self.hidden = command.help, command.hidden
        self.commands = getattr(command, "commands", {})
        self.params = [param for param in command.params if param.name not in shared]


def _shared_options(group: dict[str, Any]) -> dict[str, Any]:
    """Return the options that all commands of a large group share: name -> option."""
    members = [member for member in group.values() if not member.hidden]
    if len(members) < 10:
        return {}
    first = {param.name: param for param in members[0].params if param.name != "help"}
    common = set.intersection(*({param.name for param in member.params} for member in members))
    return {name: param for name, param in first.items() if name in common}


def _usage(command: Any, name: str) -> str:
    arguments = [
        param.name.upper() for param in command.params if param.param_type_name == "argument"
    ]
    return f"```\n{' '.join([name, *arguments, '[OPTIONS]'])}\n```"


def _options_table(params: list[Any]) -> str:
    if not params:
        return ""
    rows = ["| option | meaning | default |", "| --- | --- | --- |"]
    for param in params:
        is_argument = param.param_type_name == "argument"
        names = param.name.upper() if is_argument else ", ".join(param.opts)
        default = param.default
        shown = (
            ""
            if default in (None, False, [], (), "")
            else f"`{getattr(default, 'value', default)}`"
        )
        meaning = _one_line(getattr(param, "help", "") or "")
        rows.append(f"| `{names}` | {meaning} | {shown} |".replace("|`", "| `"))
    return "\n".join(rows)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
