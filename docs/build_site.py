"""Build the documentation as a site, offline: ``make docs`` writes it into build/site.

The pages are those of the repository, the executed notebooks, and pages that mkdocstrings makes
from docstrings. The build fails if a link leads nowhere, a page is not in the navigation of
docs/mkdocs.yml, a public name has no section (docs/site_hooks.py), or a notebook fails.
"""

import os
import re
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

import toolkit as tk
from toolkit.cli import app
from toolkit.contract.extra_operations import FETCHED

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "site_pages"
FILES: Final = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "data/README.md")
LIKE_MODULES: Final = {
    "prepare.fills": "prepare.fills",
    "provenance": "frames.provenance",
    "widgets.live_monitor": "widgets.live_monitor",
    "widgets.slippage_explorer": "widgets.slippage_explorer",
    "widgets.wallet_explorer": "widgets.wallet_explorer",
}
"""Functions with the name of their module, which hides them from mkdocstrings -> the module."""
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
    for name in ("site.css", "iframe-worker.js"):
        shutil.move(PAGES / "docs" / name, PAGES)


def write_reference() -> None:
    """Write the pages of public names, for mkdocstrings, and of the command line."""
    folder = PAGES / "docs/reference"
    modules = {name: value for name in tk.__all__ if ismodule(value := getattr(tk, name))}
    del modules["plots"]  # its page has pictures
    fetched = {operation.function for operation in FETCHED.values()}
    core = sorted(
        set(tk.__all__) - modules.keys() - {"plots", "provenance", *tk.errors.__all__, *fetched}
    )
    pages = {"toolkit": f"# toolkit\n\n::: toolkit\n    options: {{members: {core}}}\n"}
    for name, value in modules.items():
        inner = [f"{name}.{part}" for part in value.__all__ if ismodule(getattr(value, part))]
        shown = [part for part in value.__all__ if not ismodule(getattr(value, part))]
        parts = [
            f"# tk.{name} {{#toolkit.{name}}}\n\n::: toolkit.{name}\n"
            f"    options: {{members: {shown}}}\n"
        ]
        parts += [f"## tk.{part} {{#toolkit.{part}}}\n\n::: toolkit.{part}" for part in inner]
        pages[f"tk_{name}"] = "\n\n".join(parts)
    for public, module in LIKE_MODULES.items():
        topic, _, name = public.rpartition(".")
        pages[f"tk_{topic}" if topic else "toolkit"] += (
            f"\n\n[](){{#toolkit.{public}}}\n\n::: toolkit.{module}.{name}\n"
            "    options: {show_root_heading: true}\n"
        )
    pages["figures"] = figures_page(folder / "figures")
    pages["command_line"] = command_page()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)


def figures_page(folder: Path) -> str:
    """Draw every figure on the tiny exchange, and return their page.

    - ``folder``: where to put the pictures
    """
    from tests.plots.figures import draw_figure
    from tests.plots.results import compute_results

    say("drawing the figures")
    folder.mkdir()
    results = compute_results(tk.local(seed=7, size="tiny", default=False))
    for name, result in results.items():
        draw_figure(name, result).savefig(folder / f"{name}.png", dpi=90)
    cells, parts = "", ""
    for name in tk.plots.__all__:
        function = unwrap(getattr(tk.plots, name))
        file = Path(function.__code__.co_filename).stem
        parts += f"## {name} {{#toolkit.plots.{name}}}\n\n"
        if name in results:
            image = f'<img src="figures/{name}.png" alt="{name}" loading="lazy">'
            label = f"<span>{name.replace('_', ' ')}</span>"
            cells += f'<a href="#toolkit.plots.{name}">{image}{label}</a>'
            parts += f"![{name}](figures/{name}.png)\n\n"
        parts += f"::: toolkit.plots.{file}.{name}\n\n"
    return f"""# Figures {{#toolkit.plots}}

{tk.plots.__doc__}

Every picture shows the tiny simulated exchange. Click one for its description.

<div class="gallery">{cells}</div>

{parts}"""


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
    if execute:
        tk.local(seed=7, size="demo", default=False).close()  # simulated once, for all kernels
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = sorted((ROOT / "notebooks").glob("*.ipynb"))
        list(pool.map(lambda source: run_notebook(source, execute=execute), sources))


def run_notebook(source: Path, *, execute: bool) -> None:
    """Write a notebook as a page; raise SystemExit if a cell fails."""
    say(f"notebook {source.stem}")
    command = [sys.executable, "-m", "nbconvert", "--to", "markdown", *["--execute"][:execute]]
    command += ["--output-dir", str(PAGES / "notebooks"), str(source)]
    environment = os.environ | {"TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"docs: {source.name} failed:\n{done.stderr}")
    page = PAGES / "notebooks" / f"{source.stem}.md"
    text = re.sub(r"<style scoped>.*?</style>\n*", "", page.read_text(), flags=re.S)
    page.write_text(
        text.replace('<table border="1" class="dataframe">', '<table class="dataframe">')
    )


if __name__ == "__main__":
    began = time.perf_counter()
    build(notebooks="--no-notebooks" not in sys.argv)
    say(f"build/site/index.html, in {time.perf_counter() - began:.0f} s")
