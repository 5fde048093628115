"""Write the generated documents: docs/reference/, and the blocks between markers in other pages.

``python docs/generate.py`` writes the files that have changed.
"""

import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

# The other scripts of this folder, and the cases of the tests, are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from reference_pages import (
    markdown_table,
    operations_table,
    reference_pages,
    replace_block,
    write_changed,
)

import toolkit
from toolkit.installation import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
_ASSUMED = re.compile(r"# ASSUMED:(.*(?:\n\s*#(?! ASSUMED:).*)*)")


def documents() -> dict[str, str]:
    """Return every generated document: path from the root -> text."""
    blocks = {
        "docs/reference/index.md": ("operations", operations_table()),
        "docs/analysis.md": ("helpers", helpers_block()),
        "docs/assumptions.md": ("assumptions", assumptions_block()),
        "docs/live_service.md": ("facts", facts_block()),
        "docs/install.md": ("extras", extras_table()),
    }
    pages = {
        path: replace_block((ROOT / path).read_text(), name, block)
        for path, (name, block) in blocks.items()
    }
    return reference_pages() | pages | {"tests/typing/public_api.txt": public_api()}


def helpers_block() -> str:
    """Return the tables of analysis helpers by topic."""
    from tests.scale.case import cases, topics

    helpers = {case.helper: case for case in cases()}
    parts = []
    for topic in topics():
        rows = [
            (f"`tk.{name}`", _first_line(case.function))
            for name, case in sorted(helpers.items())
            if case.topic == topic
        ]
        parts += [f"## `tk.{topic}`", _first_line(getattr(toolkit, topic))]
        parts.append(markdown_table(("helper", "what it does"), rows))
    return "\n\n".join(parts)


def _first_line(documented: Any) -> str:
    return str(documented.__doc__).strip().splitlines()[0]


def assumptions_block() -> str:
    """Return all assumptions in the code, by package."""
    parts: dict[str, list[str]] = {}
    for path in sorted((ROOT / "toolkit").rglob("*.py")):
        package = path.relative_to(ROOT / "toolkit").parts[0].removesuffix(".py")
        lines = [f"- {sentence}\n" for sentence in assumed_in(path.read_text())]
        parts[package] = parts.get(package, []) + lines
    return "\n".join(f"## `toolkit.{name}`\n\n{''.join(it)}" for name, it in parts.items() if it)


def assumed_in(source: str) -> list[str]:
    """Return the assumptions in the comments of a source text."""
    return [_one_line(re.sub(r"\n\s*#", " ", found)) for found in _ASSUMED.findall(source)]


def facts_block() -> str:
    """Return the facts about the live service, from docs/live_service.toml."""
    known = tomllib.loads((ROOT / "docs/live_service.toml").read_text())
    parts = [markdown_table(("known from", "meaning"), known["sure"].items())]
    for section in known["section"]:
        rows = [
            [_one_line(fact[name]) for name in ("statement", "sure", "does")]
            for fact in section["fact"]
        ]
        parts += [f"## {section['number']}. {section['title']}", _one_line(section["about"])]
        parts.append(markdown_table(("fact", "known from", "what this project does"), rows))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def extras_table() -> str:
    """Return the table of extras: what each is for, and its libraries."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = []
    for extra, purpose in EXTRAS.items():
        names = [re.split(r"[<>=]", text)[0] for text in project["optional-dependencies"][extra]]
        own = [name for name in names if not name.startswith(project["name"])]
        rows.append((f"`{extra}`", purpose, ", ".join(own)))
    rows.append(("`all`", "all of them", ""))
    return markdown_table(("extra", "for", "libraries"), rows)


def public_names() -> dict[str, Any]:
    """Return every public name as users write it behind ``tk.`` -> its value."""
    names = {name: getattr(toolkit, name) for name in toolkit.__all__}
    for name, module in list(names.items()):
        if inspect.ismodule(module):
            names |= {f"{name}.{inner}": getattr(module, inner) for inner in module.__all__}
    return names


def list_members(kind: type) -> dict[str, Any]:
    """Return the members of a class, and those of its private bases in this package."""
    public = set(map(id, public_names().values()))
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "toolkit"]
    own = [base for base in bases if base is kind or id(base) not in public]
    return {name: member for base in reversed(own) for name, member in vars(base).items()}


def public_api() -> str:
    """Return every public name with its parameters and their defaults, one on each line."""
    lines = []
    for name, value in sorted(public_names().items()):
        if inspect.ismodule(value):
            continue
        is_callable = inspect.isfunction(value) or hasattr(value, "__dataclass_fields__")
        lines.append(f"{name}{_bare_signature(value) if is_callable else ''}")
        if inspect.isclass(value) and not issubclass(value, Exception):
            lines += [
                f"{name}.{key}{_bare_signature(item)}"
                for key, item in sorted(list_members(value).items())
                if inspect.isfunction(item) and not key.startswith("_")
            ]
    return "\n".join(lines) + "\n"


def _bare_signature(function: Any) -> str:
    """Return parameters and defaults without types, which mypy and tests/typing check."""
    parameters = inspect.signature(function).parameters.values()
    bare = [item.replace(annotation=inspect.Parameter.empty) for item in parameters]
    text = str(inspect.Signature(bare))
    return re.sub(r"<[^<>]* at 0x\w+>|<(?:built-in )?function (\w+)[^<>]*>|<factory>", r"...", text)


if __name__ == "__main__":
    write_changed(ROOT, documents())
