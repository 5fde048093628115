"""Rules of language that a program can check: docs/glossary.md and CONTRIBUTING.md state them."""

import ast
import re
import statistics
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPENINGS = re.compile(r"(Gives?|Says?|Tells?|Holds?|Puts?)\b")
TYPE_NAME = re.compile(r"_*[A-Z]\w*[a-z]")
RETIRED = re.compile(
    r"\b(?:is|are|was|were|be) told\b|\bdone without\b|\bof which it is\b|\bgives? back\b", re.I
)
IRREGULAR = frozenset(
    [
        "told",
        "held",
        "given",
        "made",
        "kept",
        "said",
        "seen",
        "known",
        "shown",
        "taken",
        "found",
        "sent",
        "drawn",
        "done",
        "left",
        "met",
        "paid",
        "won",
        "lost",
        "built",
        "bought",
        "sold",
        "spent",
        "begun",
        "written",
        "chosen",
        "broken",
        "grown",
        "hidden",
        "led",
        "meant",
        "heard",
    ]
)
# Nouns of the field, and adjectives, that end like a participle.
NOUNS = frozenset(
    [
        "feed",
        "need",
        "seed",
        "speed",
        "spread",
        "string",
        "embed",
        "funding",
        "staking",
        "paging",
        "setting",
    ]
)


@cache
def trees():
    """Return the syntax tree of each module of the package."""
    paths = sorted((ROOT / "toolkit").rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in paths if "notebooks" not in path.parts}


def functions():
    """Return the names of all functions and methods, without those that Python calls."""
    return [
        node.name.strip("_")
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not node.name.startswith("__")
    ]


def docstrings():
    """Yield the place and the text of each docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                name = getattr(node, "name", "module")
                yield f"{path.relative_to(ROOT)}: {name}", text


def is_participle(name):
    """Return whether a name is one word that ends like a participle."""
    regular = len(name) > 4 and name.endswith(("ed", "ing"))
    return "_" not in name and name not in NOUNS and (name in IRREGULAR or regular)


def imported_modules(tree, modules):
    """Return the modules of the package that a module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & modules or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules


def test_docstrings_open_with_result():
    wrong = [f"{place}: {text.splitlines()[0]}" for place, text in docstrings()
             if OPENINGS.match(text)]  # fmt: skip
    assert wrong == [], "open a docstring with 'Return', 'Compute', ... or with a noun"


def test_docstrings_avoid_retired_phrases():
    wrong = [f"{place}: {found[0]}" for place, text in docstrings()
             if (found := RETIRED.search(text))]  # fmt: skip
    assert wrong == [], "write who does what, in the present tense"


def test_few_functions_are_participles():
    names = functions()
    wrong = [name for name in names if is_participle(name)]
    assert len(wrong) <= 0.05 * len(names), f"use a verb and a noun: {sorted(set(wrong))}"


def test_half_of_functions_have_two_words():
    names = functions()
    short = [name for name in names if "_" not in name]
    assert len(short) <= 0.5 * len(names), Counter(short).most_common(20)


def type_names(tree):
    """Yield the names of the classes and of the type aliases of a module.

    A constant, such as ``MOST_ROWS``, is no type alias, and neither is a type variable ``T``.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and TYPE_NAME.match(target.id):
                yield target.id


def repeated_names(modules):
    """Return the type names that differ at most by underscores around them or by a plural s."""
    places = defaultdict(list)
    for place, tree in modules.items():
        for name in type_names(tree):
            places[name.strip("_").removesuffix("s")].append(f"{place}: {name}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_type_names_are_unique():
    modules = {str(path.relative_to(ROOT)): tree for path, tree in trees().items()}
    assert repeated_names(modules) == {}, "give each class and type alias a name of its own"


@pytest.mark.parametrize(
    "code",
    ["class Rows: ...", "class _Row: ...", "Rows = list[int]", "_Row: TypeAlias = list[int]"],
)
def test_similar_type_names_are_found(code):
    modules = {"a.py": ast.parse("class Row: ..."), "b.py": ast.parse(code)}
    assert list(repeated_names(modules)) == ["Row"]
    assert repeated_names({"a.py": ast.parse("class Row: ...\nROWS = 3\nrows = [1]")}) == {}


def test_modules_serve_several_importers():
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in trees()
    }
    modules = {name for name, path in names.items() if path.stem != "__init__"}
    importers: Counter[str] = Counter()
    for tree in trees().values():
        importers.update(imported_modules(tree, modules))
    single = sorted(name for name in modules if importers[name] == 1)
    assert len(single) <= 0.45 * len(modules), f"merge into the only importer: {single}"


def test_test_names_are_short():
    names = [
        node.name.removeprefix("test_")
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_")
    ]
    words = [name.count("_") + 1 for name in names]
    assert statistics.median(words) <= 5
    assert [name for name, n in zip(names, words, strict=True) if n > 8] == []
