"""The pages of helpers, figures and other public names as Markdown, made from their docstrings.

`docs/build_site.py` writes them into the site.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import toolkit
from toolkit.contract.operations import OPERATIONS

__all__ = ["api_pages", "example_section", "figures_page", "link_names", "public_names"]

FOLDER: Final = "docs/reference"
NO_FIGURES: Final = ("alt", "use")  # functions of `toolkit.plots` that draw nothing
_SECTION = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\S.*)\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE)
_ALL_LISTS = ("Parameters", "Attributes", "Columns", "Raises", "Warns")
_CODE_SPAN = re.compile(r"(?<![`\[])`(?:tk\.|toolkit\.)?([a-zA-Z_][\w.]*)(\([^`]*\))?`(?![`\]])")

Member = tuple[str, Any]


def public_names() -> dict[str, Any]:
    """Return every public name as users write it behind ``tk.`` -> its value."""
    names: dict[str, Any] = {}
    for name in toolkit.__all__:
        value = getattr(toolkit, name)
        names[name] = value
        if isinstance(value, ModuleType):
            names |= {f"{name}.{inner}": getattr(value, inner) for inner in value.__all__}
    return names


def api_pages() -> dict[str, str]:
    """Return the pages of all modules and of the functions of `toolkit` itself: path -> text.

    The pages of operations are made from the contract, and the page of figures needs pictures.
    """
    own = {
        name: value
        for name, value in public_names().items()
        if "." not in name and not isinstance(value, ModuleType) and not _is_error(value)
    }
    core = {name: value for name, value in own.items() if not _is_fetch_function(value)}
    pages = {f"{FOLDER}/toolkit.md": _page("toolkit", CORE, core)}
    for name in toolkit.__all__:
        module = getattr(toolkit, name)
        if isinstance(module, ModuleType) and name != "plots":
            members = {f"{name}.{inner}": getattr(module, inner) for inner in module.__all__}
            pages[f"{FOLDER}/tk_{name}.md"] = _page(f"tk.{name}", inspect.getdoc(module), members)
    return pages


def example_section(name: str) -> str:
    """Return the section with the example of a fetch function, from its docstring."""
    documented = inspect.getdoc(getattr(toolkit, name)) or ""
    example = documented.split("\nExamples\n--------\n")[1].split("\nColumns\n-------\n")[0]
    return "\n\n".join([f"### Example of {name}", *_example_parts(example)])


def figures_page(pictures: Mapping[str, str]) -> str:
    """Return the gallery: a thumbnail of each figure, then each figure with its description.

    - ``pictures``: name of a figure -> path of its picture, from the folder of the page

    Raise KeyError if a figure has no picture.
    """
    names = [name for name in toolkit.plots.__all__ if name not in NO_FIGURES]
    cells = [
        f'<a href="#{name}"><img src="{pictures[name]}" alt="{name}" loading="lazy">'
        f"<span>{name.replace('_', ' ')}</span></a>"
        for name in names
    ]
    parts = ["# Figures", inspect.getdoc(toolkit.plots) or ""]
    parts.append(FIGURES)
    parts.append(f'<div class="gallery">{"".join(cells)}</div>')
    for name in [*names, *NO_FIGURES]:
        function = getattr(toolkit.plots, name)
        parts.append(f"## {name} {{ #{name} }}")
        if name in pictures:
            parts.append(f"![{name}]({pictures[name]})")
        parts.extend(_function_parts(f"plots.{name}", function))
    return _join(parts)


def link_names(text: str, pages: Mapping[str, str], own: str = "") -> str:
    """Return Markdown in which code spans of public names are links to their sections.

    - ``pages``: public name -> path of its section, from the folder of the page
    - ``own``: a name that is not linked: the section itself
    """

    def link(span: re.Match[str]) -> str:
        name = span[1]
        if name == own or name not in pages or not span[0].startswith(("`tk.", "`toolkit.")):
            return span[0]
        return f"[{span[0]}]({pages[name]})"

    blocks = re.split(r"(^```.*?^```|^#.*?$|\[[^\]]*\]\([^)]*\))", text, flags=re.S | re.M)
    return "".join(
        block if place % 2 else _CODE_SPAN.sub(link, block) for place, block in enumerate(blocks)
    )


def _page(title: str, about: str | None, members: Mapping[str, Any]) -> str:
    summary = [f"| [`tk.{n}`](#{n.split('.')[-1]}) | {_summary(v)} |" for n, v in members.items()]
    parts = [f"# {title}", _markdown(about or "")]
    if summary:
        parts.append("\n".join(["| name | what it does |", "| --- | --- |", *summary]))
    for name, value in members.items():
        short = name.split(".")[-1]
        parts.append(f"## {short} {{ #{short} }}")
        parts.extend(_member_parts(name, value))
    return _join(parts)


def _member_parts(name: str, value: Any) -> Iterator[str]:
    if inspect.isfunction(value):
        yield from _function_parts(name, value)
    elif inspect.isclass(value):
        yield from _class_parts(name, value)
    elif isinstance(value, ModuleType):
        yield _markdown(inspect.getdoc(value) or "")
        for inner, member in vars(value).items():
            is_own = getattr(member, "__module__", "") == value.__name__
            if is_own and not inner.startswith("_") and inspect.isfunction(member):
                yield f"### {inner} {{ #{inner} }}"
                yield from _function_parts(f"{name}.{inner}", member)
    elif isinstance(value, dict):
        rows = [f"| `{key}` | {meaning} |" for key, meaning in value.items()]
        yield "\n".join([f"| `tk.{name}` | |", "| --- | --- |", *rows])
    else:
        yield f"`tk.{name}` is `{value!r}`."


def _function_parts(name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield f"```python\ntk.{name}{_signature(function)}\n```"
    yield from _docstring_parts(inspect.getdoc(function) or "")


def _class_parts(name: str, kind: type) -> Iterator[str]:
    bases = [base.__name__ for base in kind.__bases__ if base is not object]
    yield f"*A class{' of ' if bases else ''}{', '.join(f'`{base}`' for base in bases)}.*"
    yield from _docstring_parts(inspect.getdoc(kind) or "")
    if issubclass(kind, Exception):
        return
    for method, value in list_members(kind).items():
        if method.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        function = value.fget if isinstance(value, property) else value
        if documented := inspect.getdoc(function):
            yield f"### {kind.__name__}.{method} {{ #{kind.__name__}.{method} }}"
            if inspect.isfunction(value):
                yield f"```python\n{kind.__name__.lower()}.{method}{_signature(function)}\n```"
            yield from _docstring_parts(documented)


def list_members(kind: type) -> dict[str, Any]:
    """Return the members of a class, and those of its private bases in this package."""
    public = set(map(id, public_names().values()))
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "toolkit"]
    own = [base for base in bases if base is kind or id(base) not in public]
    return {name: member for base in reversed(own) for name, member in vars(base).items()}


def _signature(function: Callable[..., Any]) -> str:
    """Return the parameters of a function with their defaults; types stand in its table."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    bare = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    text = str(bare)
    if len(text) <= 80:
        return text
    inner = re.split(r", (?![^(\[{]*[)\]}])", text[1:-1])
    return "(\n" + "".join(f"    {parameter},\n" for parameter in inner) + ")"


def _docstring_parts(docstring: str) -> Iterator[str]:
    opening, *sections = _SECTION.split(docstring)
    yield _markdown(opening)
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            yield "**Example**"
            yield from _example_parts(body)
            continue
        yield f"**{title}**"
        if title in _ALL_LISTS:
            yield _definitions(body)
        elif title in ("Returns", "Yields"):
            yield _returned(body)
        else:
            yield _markdown(body)


def _definitions(body: str) -> str:
    rows = []
    for names, text in _ENTRY.findall(body):
        name, _, kind = names.partition(" : ")
        label = ", ".join(f"`{part}`" for part in name.split(", "))
        words = _markdown(inspect.cleandoc(text)).replace("\n", "\n    ")
        rows.append(f"{label}{f' · *{kind}*' if kind else ''}\n:   {words or '&nbsp;'}")
    return "\n\n".join(rows)


def _returned(body: str) -> str:
    head, _, rest = body.partition("\n")
    return f"*{head.strip()}*\n\n{_markdown(inspect.cleandoc(rest))}".strip()


def _example_parts(body: str) -> Iterator[str]:
    """Yield the examples of a docstring: prose, and code with its results."""
    for block in re.split(r"\n\s*\n", body.strip()):
        is_code = block.lstrip().startswith(">>>")
        yield f"```pycon\n{block}\n```" if is_code else _markdown(block)


def _markdown(text: str) -> str:
    """Return the text of a docstring as Markdown: code spans, and lists with a line before."""
    text = re.sub(r"``(.+?)``", r"`\1`", text.strip())
    return re.sub(
        r"(?<!\n)\n(- )", r"\n\n\1", re.sub(r"(- .*(?:\n  .*)*)\n\n(?=- )", r"\1\n", text)
    )


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|").replace("``", "`")


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _is_fetch_function(value: Any) -> bool:
    names = {operation.function for operation in OPERATIONS.values()}
    return inspect.isfunction(value) and value.__name__ in names


def _join(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


CORE: Final = """Sessions, and what works with every fetch function. The
[reference of operations](index.md) has the fetch functions themselves, and [errors](tk_errors.md)
the errors and warnings."""

FIGURES: Final = (
    """Every picture shows the tiny simulated exchange. Click one for its description."""
)
