"""Build the documentation as a site, offline: ``make docs`` writes it into build/site.

The pages are those of the repository, the executed notebooks, and pages that mkdocstrings makes
from docstrings. The build fails if a link leads nowhere, a page is not in the navigation of
docs/mkdocs.yml, a public name has no section (docs/site_hooks.py), or a notebook fails.
"""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from inspect import ismodule, unwrap
from pathlib import Path
from typing import Any, Final

# The results that the figures show are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import typer
import typer.cli
import typer.core
from reference_pages import render

import toolkit as tk
from toolkit.cli import app
from toolkit.contract.operations import FETCHED

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "site_pages"
FILES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "data/README.md")
COMMANDS: Final = """# Command line

Messages and progress go to stderr, results to stdout. Exit codes: 0 done; 1 failed; 2 the command
line is wrong; 3 rows are missing; 130 interrupted. The options of `toolkit fetch` and of `toolkit
plan` are options of each of their commands."""


def build(*, notebooks: bool = True) -> None:
    """Write all pages, and let mkdocs make the site of them.

    - ``notebooks``: whether to run the notebooks; otherwise their pages show only their code
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    copy_pages()
    write_reference()
    run_notebooks(execute=notebooks)
    say("writing the site, checking its links")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", "docs/mkdocs.yml"]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})


def say(what: str) -> None:
    """Print what happens now."""
    print(f"docs: {what}", flush=True)


def copy_pages() -> None:
    """Copy the pages of the repository; relative links between them work in the site, too."""
    shutil.copytree(ROOT / "docs", PAGES / "docs", ignore=shutil.ignore_patterns("*.py", "*.j2"))
    for name in (*FILES, "environment.yml"):
        (PAGES / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, PAGES / name)


def write_reference() -> None:
    """Write the pages of public names, for mkdocstrings, and of the command line."""
    modules = {name for name in tk.__all__ if ismodule(getattr(tk, name))}
    fetched = {operation.function for operation in FETCHED.values()}
    core = sorted({*tk.__all__} - modules - {"provenance", *tk.errors.__all__, *fetched})
    pages = {
        "toolkit": f"# toolkit\n\n::: toolkit\n    options: {{members: {core}}}\n\n"
        + section("toolkit.provenance", "toolkit.frames.provenance.provenance"),
        "figures": figures_page(),
        "command_line": command_page(),
    }
    for name in modules - {"plots"}:  # whose page has pictures
        module, rest = getattr(tk, name), ""
        shown = [inner for inner in module.__all__ if not ismodule(getattr(module, inner))]
        for inner in module.__all__:
            place = f"toolkit.{name}.{inner}"
            if inner not in shown:
                rest += f"## tk.{name}.{inner} {{#{place}}}\n\n::: {place}\n\n"
            elif place in sys.modules:
                rest += section(place, f"{place}.{inner}")
        text = f"# tk.{name} {{#toolkit.{name}}}\n\n::: toolkit.{name}\n"
        text += f"    options: {{members: {shown}}}\n\n{rest}"
        pages[f"tk_{name}"] = text
    for name, text in pages.items():
        (PAGES / f"docs/reference/{name}.md").write_text(text)


def section(public: str, path: str) -> str:
    """Return the section of a function that has the name of its module, which hides it."""
    return f"[](){{#{public}}}\n\n::: {path}\n    options: {{show_root_heading: true}}\n\n"


def figures_page() -> str:
    """Draw every figure on the tiny exchange, and return their page."""
    from tests.plots.figures import draw_figure
    from tests.plots.results import compute_results

    say("drawing the figures")
    folder = PAGES / "docs/reference/figures"
    folder.mkdir()
    results = compute_results(tk.local(seed=7, size="tiny", default=False))
    for name, result in results.items():
        draw_figure(name, result).savefig(folder / f"{name}.png", dpi=90)
    files = {
        name: Path(unwrap(getattr(tk.plots, name)).__code__.co_filename).stem
        for name in tk.plots.__all__
    }
    drawn = [name for name in files if name in results]
    return render("figures.md.j2", about=tk.plots.__doc__, drawn=drawn, functions=files)


def command_page() -> str:
    """Return the page of the command line; groups have the options that their commands share."""
    command = typer.main.get_command(app)
    _prepare(command)
    context = typer.Context(command, obj={typer.core.MARKUP_MODE_KEY: "rich"})
    text = typer.cli.get_docs_for_click(obj=command, ctx=context, name="toolkit")
    return f"{COMMANDS}\n\n#{text}"


def _prepare(group: Any) -> None:
    """Leave out hidden commands and shared options, and state the whole purpose of a command."""
    group.commands = {name: it for name, it in group.commands.items() if not it.hidden}
    members = list(group.commands.values())
    if len(members) > 20:
        names = [{param.name for param in member.params} for member in members]
        shared = set.intersection(*names) - {"help"}
        group.params += [param for param in members[0].params if param.name in shared]
        for member in members:
            member.params = [param for param in member.params if param.name not in shared]
    for member in members:
        member.short_help = (member.help or "").partition("\n\n")[0]
        if hasattr(member, "commands"):
            _prepare(member)


def run_notebooks(*, execute: bool) -> None:
    """Write the notebooks as pages, with their outputs if they are executed."""
    command = [sys.executable, "-m", "nbconvert", "--log-level=ERROR", "--to=markdown"]
    command += [f"--output-dir={PAGES / 'notebooks'}"]
    if execute:
        command += ["--execute"]
        tk.local(seed=7, size="demo", default=False).close()  # simulated once, for all kernels
    environment = os.environ | {"TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT)}

    def run(source: Path) -> None:
        say(f"notebook {source.stem}")
        subprocess.run([*command, source], env=environment, check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, sorted((ROOT / "notebooks").glob("*.ipynb"))))


if __name__ == "__main__":
    began = time.perf_counter()
    build(notebooks="--no-notebooks" not in sys.argv)
    say(f"build/site/index.html, in {time.perf_counter() - began:.0f} s")
