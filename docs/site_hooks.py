"""What mkdocs does with each page: links of public names, examples of operations, a check."""

import re
from inspect import ismodule
from typing import Any, Final

import griffe

import toolkit as tk

_EXAMPLE: Final = r"""### Example of \1

::: toolkit.\1
    options:
      show_docstring_description: false
      show_docstring_parameters: false
      show_docstring_raises: false
      show_docstring_returns: false
      show_docstring_warns: false

### Errors of \1"""
# Links, code blocks and headings stay as they are; other code that is a public name becomes a link.
_NAMES: Final = re.compile(
    r"<(a|pre|h\d)\b.*?</\1>|(<code>(?:tk|toolkit)\.([a-zA-Z_][\w.]*)(?:\([^<]*\))?</code>)", re.S
)


# Parameters that share their description: each one has a default of its own.
_SHARED: Final = re.compile(r"^([\w*]+(?:, [\w*]+)+) : (.*\n(?: +.*(?:\n|\Z))+)", re.M)


class Docstrings(griffe.Extension):
    """Makes examples and literal blocks in docstrings of modules Markdown; splits parameters."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if not obj.docstring:
            return
        text = obj.docstring.value
        if obj.is_module:
            text = re.sub(r"^(>>> (?:.+\n?)+)", r"```pycon\n\1\n```", text, flags=re.M)
            text = re.sub(r"^::$|(?<=:):$", "", text, flags=re.M)
        obj.docstring.value = _SHARED.sub(
            lambda found: "".join(f"{name} : {found[2]}" for name in found[1].split(", ")), text
        )


class PlotParameters(griffe.Extension):
    """Shows the keyword parameters that plots have in common, which they take as ``**look``."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace ``**look`` of a function and of its overloads."""
        for each in (func, *(func.overloads or [])):
            if "look" in each.parameters:
                del each.parameters["look"]
                for name, default in (
                    ("ax", "None"),
                    ("theme", "'auto'"),
                    ("transparent", "False"),
                ):
                    if name not in each.parameters:
                        kind = griffe.ParameterKind.keyword_only
                        each.parameters.add(griffe.Parameter(name, kind=kind, default=default))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page with the pages of notebooks instead of their sources, and with examples."""
    markdown = re.sub(r"(\]\([^()\s]*notebooks/\w+)\.py\)", r"\1.md)", markdown)
    if page.file.src_uri.startswith("docs/reference/"):
        markdown = re.sub(
            r"^(?=## ([a-z_]+)\n\n`tk\.)", r"[](){#toolkit.\1}\n", markdown, flags=re.M
        )
        markdown = re.sub(r"^### Errors of (\w+)$", _EXAMPLE, markdown, flags=re.M)
    return markdown


def section_of(name: str) -> str:
    """Return the identifier of the section of a public name: errors have a page of their own."""
    return f"toolkit.errors.{name}" if name in tk.errors.__all__ else f"toolkit.{name}"


def on_page_content(html: str, **_: Any) -> str:
    """Return a page on which names such as `tk.concat` are links, if they have a section."""

    def link(found: re.Match[str]) -> str:
        if not (code := found[2]):
            return found[0]
        return f'<autoref identifier="{section_of(found[3])}" optional>{code}</autoref>'

    return _NAMES.sub(link, html)


def on_env(env: Any, config: Any, **_: Any) -> None:
    """Raise SystemExit if a public name has no section."""
    names = list(tk.__all__)
    for name in tk.__all__:
        if ismodule(module := getattr(tk, name)):
            names += [f"{name}.{inner}" for inner in module.__all__]
    missing = []
    for name in names:
        try:
            config.plugins["autorefs"].get_item_url(section_of(name))
        except KeyError:
            missing.append(name)
    if missing:
        raise SystemExit(f"docs: no section for {', '.join(missing)}")
