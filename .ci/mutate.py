"""Change the code of a module in many small ways, and list the changes that no test notices.

Usage: mutate.py MODULE TESTS... [--again] [--only PATTERN] [--every NUMBER] [--longest SECONDS]

mutmut makes the changes. All tests are imported once. Each change then gets a fork of this process:
the fork replaces the code of the changed function and runs the tests that reach the changed line,
until one fails: those that noticed other changes first, then the fastest.
tests/harmless_changes.toml lists the changes that are known to be harmless; any other change that
no test notices makes the exit code 1.
"""

import argparse
import difflib
import functools
import gc
import importlib
import json
import os
import re
import signal
import sys
import time
import tomllib
import traceback
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import libcst as cst
import libcst.matchers as m
import mutmut.mutation.file_mutation as mutmut_files
import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation import mutators
from mutmut.mutation.pragma_handling import IgnoredCode

KEPT_FIXTURES = ("world", "rows_of")  # of the whole session: made once, before the forks
WALL_SECONDS, CPU_SECONDS = 90, 10  # in addition to three times the tests' own time
HARMLESS = Path("tests/harmless_changes.toml")


@dataclass(frozen=True)
class Change:
    """One changed version of the module: its text, the changed lines, and a name for people."""

    name: str
    text: str
    lines: range


def change_string(node: cst.BaseString) -> Iterator[cst.BaseString]:
    """Change a name; a text with spaces is a message, which people read and not programs."""
    if isinstance(node, cst.SimpleString) and " " not in node.value:
        yield from list(mutators.operator_string(node))[:1]


def change_arguments(node: cst.Call) -> Iterator[cst.Call]:
    """Replace each argument by None, and leave out each that has a name."""
    for place, argument in enumerate(node.args):
        before, after = node.args[:place], node.args[place + 1 :]
        if argument.star == "" and not m.matches(argument.value, m.Name("None")):
            changed = argument.with_changes(value=cst.Name("None"))
            yield node.with_changes(args=[*before, changed, *after])
        if argument.keyword is not None:
            yield node.with_changes(args=[*before, *after])


OWN = {
    mutators.operator_string: change_string,
    mutators.operator_arg_removal: change_arguments,
}
OPERATORS = [(kind, OWN.get(operator, operator)) for kind, operator in mutators.mutation_operators]


class Visitor(mutmut_files.MutationVisitor):
    """Collects changes, also in properties and in the constants of a module."""

    METADATA_DEPENDENCIES = (
        *mutmut_files.MutationVisitor.METADATA_DEPENDENCIES,
        WhitespaceInclusivePositionProvider,
    )

    def __init__(self) -> None:
        super().__init__(OPERATORS, IgnoredCode(set(), set(), set()))
        self.spans: list[tuple[Any, str, cst.CSTNode]] = []
        self._names: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Keep the names of the classes and functions around a node."""
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
        return super().on_visit(node)

    def on_leave(self, node: cst.CSTNode) -> None:
        """Forget the name of a class or function at its end."""
        super().on_leave(node)
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return False
        # Defaults of parameters belong to the function and not to its code. What an error says is
        # for people. The fields of a class are made when the class is.
        in_function = self.get_metadata(mutmut_files.OuterFunctionProvider, node, None)
        is_field = (
            len(self._names) > 0
            and not isinstance(in_function, cst.FunctionDef)
            and isinstance(node, cst.Assign | cst.AnnAssign)
        )
        # A statement of the module has had its effect before the forks.
        is_done = len(self._names) == 0 and isinstance(node, cst.Expr)
        is_public_list = m.matches(node, m.Assign(targets=[m.AssignTarget(m.Name("__all__"))]))
        # `Floats = npt.NDArray[...]` names a type, which only annotations use.
        is_type = len(self._names) == 0 and m.matches(node, m.Assign(value=m.Subscript()))
        kinds = cst.Decorator | cst.Import | cst.ImportFrom | cst.Param | cst.Raise
        if isinstance(node, kinds) or is_field or is_done or is_public_list or is_type:
            return True
        return bool(super()._skip_node_and_children(node))

    def _create_mutations(self, node: cst.CSTNode) -> None:
        before = len(self.mutations)
        super()._create_mutations(node)
        for mutation in self.mutations[before:]:
            span = self.get_metadata(WhitespaceInclusivePositionProvider, node, None)
            if span is not None:
                self.spans.append((span, ".".join(self._names), mutation.mutated_node))


def find_changes(path: Path) -> list[Change]:
    """Return all changes of a module, in the order of its lines."""
    text = path.read_text()
    wrapper = MetadataWrapper(cst.parse_module(text))
    visitor = Visitor()
    module = wrapper.visit(visitor)
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    changes: dict[str, Change] = {}
    seen: Counter[str] = Counter()
    texts = {text}
    for span, function, node in visitor.spans:
        start = begins[span.start.line - 1] + span.start.column
        stop = begins[span.end.line - 1] + span.end.column
        changed = text[:start] + module.code_for_node(node) + text[stop:]
        if changed in texts:
            continue
        texts.add(changed)
        try:
            compile(changed, str(path), "exec")
        except SyntaxError:
            continue
        new = changed.splitlines(keepends=True)
        removed, added = [], []
        for tag, i, j, k, end in difflib.SequenceMatcher(None, lines, new, False).get_opcodes():
            if tag != "equal":
                removed += [line.strip() for line in lines[i:j]]
                added += [line.strip() for line in new[k:end]]
        name = f"{function or 'module'}: {' '.join(removed)} => {' '.join(added)}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" ({seen[name]})"
        changes[name] = Change(name, changed, range(span.start.line, span.end.line + 1))
    return list(changes.values())


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of all functions inside of a code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes_of(constant)


def codes_by_name(text: str, path: Path) -> dict[tuple[str, int], types.CodeType]:
    """Return the code of each function by its name and its place among those of one name."""
    seen: Counter[str] = Counter()
    codes = {}
    for code in codes_of(compile(text, str(path), "exec")):
        codes[code.co_qualname, seen[code.co_qualname]] = code
        seen[code.co_qualname] += 1
    return codes


def is_same(code: types.CodeType, other: types.CodeType) -> bool:
    """Return whether two codes come from the same lines of one text."""
    return (code.co_qualname, code.co_firstlineno) == (other.co_qualname, other.co_firstlineno)


def find_functions(path: Path) -> tuple[list[types.FunctionType], list[Any]]:
    """Return the living functions of a module, and all caches of the toolkit."""
    gc.unfreeze()  # tests/conftest.py freezes what the collection made
    living = gc.get_objects()
    functions = [
        value
        for value in living
        if type(value) is types.FunctionType
        and os.path.abspath(value.__code__.co_filename) == os.path.abspath(path)
    ]
    caches = [
        value
        for value in living
        if type(value) is functools._lru_cache_wrapper
        and (value.__module__ or "").startswith("toolkit")
    ]
    gc.freeze()
    gc.disable()
    return functions, caches


def apply_change(
    change: Change,
    path: Path,
    module: types.ModuleType,
    functions: list[types.FunctionType],
    caches: list[Any],
) -> None:
    """Replace the code of all living functions of the module, and its changed constants."""
    if change.name.startswith("module:"):
        apply_constants(change, path, module, functions)
    else:
        old, new = codes_by_name(path.read_text(), path), codes_by_name(change.text, path)
        for key, code in old.items():
            if key not in new or code == new[key]:
                continue
            for function in functions:
                if is_same(function.__code__, code) and len(code.co_freevars) == len(
                    new[key].co_freevars
                ):
                    function.__code__ = new[key]
    for cache in caches:
        cache.cache_clear()


def apply_constants(
    change: Change, path: Path, module: types.ModuleType, functions: list[types.FunctionType]
) -> None:
    """Replace the constants of the module that the change gives another value."""
    scratch = types.ModuleType(module.__name__)
    scratch.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    # A dataclass looks for its module.
    sys.modules[module.__name__] = scratch
    try:
        exec(compile(change.text, str(path), "exec"), scratch.__dict__)
    finally:
        sys.modules[module.__name__] = module
    assigned = {
        match[1] for match in re.finditer(r"^(\w+)(?::[^=\n]+)? = ", path.read_text(), re.MULTILINE)
    }
    for name in assigned & set(scratch.__dict__):
        was, becomes = module.__dict__.get(name), scratch.__dict__[name]
        for user in list(sys.modules.values()):
            if getattr(user, "__dict__", {}).get(name, scratch) is was:
                user.__dict__[name] = becomes
        for function in functions:
            defaults = function.__defaults__ or ()
            function.__defaults__ = tuple(becomes if d is was else d for d in defaults) or None
            for key, default in (function.__kwdefaults__ or {}).items():
                if default is was:
                    function.__kwdefaults__[key] = becomes


def run_items(items: list[Any], each: Callable[[Any], None] = lambda item: None) -> Iterator[Any]:
    """Run tests and yield whether each failed."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        each(item)
        began = time.process_time()
        # The filters of warnings, also those of a test's own mark.
        with catch_warnings_for_item(
            config=item.config, ihook=item.ihook, when="runtest", item=item
        ):
            reports = runtestprotocol(item, log=False, nextitem=following)
        yield item, [r for r in reports if r.failed], time.process_time() - began


def in_fork(work: Callable[[], int], seconds: int) -> int:
    """Return the exit code of a function in a fork; -1 if it does not end."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            null = os.open(os.devnull, os.O_RDWR)
            if "MUTATE_DEBUG" not in os.environ:
                os.dup2(null, 1)
                os.dup2(null, 2)
            status = work()
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    end = time.monotonic() + seconds * 4 + WALL_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) if not os.WIFSIGNALED(status) else -1
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


class Mutation:
    """A pytest plugin that runs the tests once, and then again for each change."""

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self.path, self.options = path, options
        kept = "-".join(path.with_suffix("").parts[1:])
        self.kept = Path(os.environ.get("MUTATE_KEPT", "build/mutate")) / f"{kept}.json"
        self.context: Callable[[str], None] = lambda name: None
        self.test = ""
        self.noticed_by = self.kept.with_suffix(".test")
        self.latest: dict[str, float] = {}
        self.shared_times: Counter[str] = Counter()  # of fixtures, by file; "" is the session

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Count the lines and the time of a shared fixture for all tests of its file."""
        file, began = request.node.nodeid.split("::")[0], time.process_time()
        if fixturedef.scope != "function":
            self.context(f"all {file}")
        try:
            return (yield)
        finally:
            self.context(self.test)
            if fixturedef.scope != "function":
                self.shared_times[file] += time.process_time() - began

    def measure(self, items: list[Any], target: Path) -> int:
        """Run all tests once; write the lines that each reaches, and its time."""
        measured = coverage.Coverage(
            data_file=None, include=[os.path.abspath(self.path)], config_file=False
        )
        # A module of constants has no lines that run in tests.
        measured.set_option("run:disable_warnings", ["no-data-collected"])
        measured.start()
        self.context = measured.switch_context

        def start(item: Any) -> None:
            self.test = item.nodeid
            measured.switch_context(item.nodeid)

        times, failed = {}, []
        for item, failures, seconds in run_items(items, start):
            times[item.nodeid] = seconds
            if failures:
                failed.append([item.nodeid, failures[0].longreprtext[-1500:]])
        measured.stop()
        lines = measured.get_data().contexts_by_lineno(os.path.abspath(self.path))
        found = {"times": times, "shared": self.shared_times, "failed": failed, "lines": lines}
        target.write_text(json.dumps(found))
        return 0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the mark of a plugin that is switched off."""
        config.addinivalue_line("markers", "xdist_group: tests of one worker")

    def pytest_runtestloop(self, session: Any) -> bool:
        """Measure the tests, then run those that reach a change for each change."""
        target = self.kept.with_suffix(".lines.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        self.module = importlib.import_module(str(self.path.with_suffix("")).replace("/", "."))
        # What was slow in the last run is not measured again.
        last = json.loads(target.read_text())["times"] if target.exists() else {}
        items = [i for i in session.items if last.get(i.nodeid, 0) <= 1.5 * self.options.longest]
        keep_fixtures(session)
        began = time.monotonic()
        if in_fork(lambda: self.measure(items, target), 1200):
            raise SystemExit("the tests without any change do not end")
        measured = json.loads(target.read_text())
        measured["times"] = last | measured["times"]
        target.write_text(json.dumps(measured))
        for name, text in measured["failed"]:
            print(f"fails without any change, and is left out: {name}\n{text}")
        failed = {name for name, _ in measured["failed"]}
        slow = {
            item.nodeid
            for item in session.items
            if measured["times"][item.nodeid] > self.options.longest
        }
        for name in sorted(slow):
            print(f"left out, {measured['times'][name]:.1f} s: {name}")
        items = [i for i in items if i.nodeid not in failed | slow]
        items.sort(key=lambda item: measured["times"][item.nodeid])
        by_line: dict[int, set[str]] = {
            int(line): set(names) for line, names in measured["lines"].items()
        }
        changes = find_changes(self.path)
        names = {change.name for change in changes}
        changes = changes[:: self.options.every]
        self.living = find_functions(self.path)
        verdicts = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        verdicts = {name: verdict for name, verdict in verdicts.items() if name in names}
        print(f"{len(items)} tests in {time.monotonic() - began:.0f} s, {len(changes)} changes")
        result: dict[str, str] = {}
        for number, change in enumerate(changes):
            if number % 50 == 0:
                print(f"{number} changes in {time.monotonic() - began:.0f} s", flush=True)
            if self.options.only and not re.search(self.options.only, change.name):
                continue
            if self.options.again and verdicts.get(change.name) in ("noticed", "endless"):
                result[change.name] = verdicts[change.name]
                continue
            result[change.name] = verdict = self.test_change(change, items, by_line, measured)
            self.kept.write_text(json.dumps(verdicts | result))
            if verdict not in ("noticed", "endless"):
                print(f"{verdict}: {change.name}", flush=True)
        self.summarize(result)
        return True

    def test_change(
        self,
        change: Change,
        items: list[Any],
        by_line: dict[int, set[str]],
        measured: dict[str, Any],
    ) -> str:
        """Return whether a test notices a change: noticed, endless, unnoticed or unreached."""
        reached = set().union(*(by_line.get(line, set()) for line in change.lines))
        files = {name[4:] for name in reached if name.startswith("all ")}
        is_constant = change.name.startswith("module:")
        chosen = [
            item
            for item in items
            if is_constant or item.nodeid in reached or item.nodeid.split("::")[0] in files
        ]
        if not chosen:
            return "unreached"
        # What noticed the last changes probably notices this one, too.
        chosen.sort(key=lambda item: -self.latest.get(item.nodeid, 0))

        def work() -> int:
            apply_change(change, self.path, self.module, *self.living)
            for item, failures, _ in run_items(chosen, limit_time):
                if failures:
                    self.noticed_by.write_text(item.nodeid)
                    return 1
            return 0

        def limit_time(item: Any) -> None:  # of the processor; its signal ends the fork
            # Any test may be the one that prepares the shared fixtures.
            shared = sum(
                measured["shared"].get(file, 0) for file in ("", item.nodeid.split("::")[0])
            )
            signal.setitimer(signal.ITIMER_PROF, 1 + 4 * (measured["times"][item.nodeid] + shared))

        seconds = sum(measured["times"][item.nodeid] for item in chosen)
        seconds += sum(measured["shared"].values())
        status = in_fork(work, int(3 * seconds) + CPU_SECONDS)
        if status == 1 and self.noticed_by.exists():
            self.latest[self.noticed_by.read_text()] = time.monotonic()
        return {0: "unnoticed", 1: "noticed", -1: "endless"}.get(status, "noticed")

    def summarize(self, result: dict[str, str]) -> None:
        """Print the score, and the changes that are not explained."""
        harmless = defaultdict(list)
        if HARMLESS.exists():
            for entry in tomllib.loads(HARMLESS.read_text()).get("harmless", []):
                harmless[entry["module"]] += entry["changes"]
        known = set(harmless[str(self.path)])
        missed = {n for n, v in result.items() if v in ("unnoticed", "unreached")}
        noticed = len(result) - len(missed)
        print(f"\n{self.path}: {len(result)} changes, {noticed} noticed")
        print(f"{len(missed & known)} harmless, {len(missed - known)} unexplained")
        if not self.options.only and not self.options.again:
            for name in sorted(known - missed):
                print(f"listed as harmless, but noticed or gone: {name}")
        for name in sorted(missed - known):
            print(f"  {name}")
        total = len(result) - len(missed & known)
        print(f"score: {100 * noticed / max(total, 1):.1f} %")
        self.unexplained = len(missed - known)


def keep_fixtures(session: Any) -> None:
    """Make the costly fixtures of the whole session before the forks."""
    for name in KEPT_FIXTURES:
        for item in session.items:
            if name in item.fixturenames:
                session._setupstate.setup(item)
                item._request.getfixturevalue(name)
                only_session = types.SimpleNamespace(listchain=lambda: [session])
                session._setupstate.teardown_exact(only_session)
                break


def main() -> int:
    """Measure one module, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--again", action="store_true", help="only what was not noticed last time")
    parser.add_argument("--only", default="", help="only changes whose name has this pattern")
    parser.add_argument("--every", type=int, default=1, help="a sample: every so many-th change")
    parser.add_argument("-k", default="", help="as of pytest: leave out tests by name")
    parser.add_argument("--longest", type=float, default=4.0, help="leave out slower tests")
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    plugin = Mutation(options.module, options)
    arguments = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--capture=no", *options.tests]
    arguments += ["-k", options.k] if options.k else []
    pytest.main(arguments, plugins=[plugin])
    return int(getattr(plugin, "unexplained", 1) > 0)


if __name__ == "__main__":
    sys.exit(main())
