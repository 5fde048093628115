"""Build the documentation as a site, offline: ``make docs`` writes it into build/site.

The pages are those of the repository (README.md is the home page), the executed notebooks, and the
pages that `api_pages.py`, `command_pages.py` and the gallery make. The build fails if a public name
has no section, a link leads nowhere, a page is in no list, or a notebook fails.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

# The other scripts of this folder, and the results of the tests, are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import api_pages
import command_pages
import reference_pages
import yaml

import toolkit as tk
from toolkit.contract.operations import OPERATIONS

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "build" / "site_pages"
SITE: Final = ROOT / "build" / "site"

EXPLANATION: Final = {
    "docs/fetching.md": "Fetching and completeness",
    "docs/accounting.md": "Accounting",
    "docs/analysis.md": "Analysis and engines",
    "docs/archive.md": "The archive",
    "docs/reports.md": "Reports",
    "docs/simulated_exchange.md": "The simulated exchange",
    "docs/service.md": "The service on a port",
    "docs/live_service.md": "The live service",
    "docs/faults.md": "Faults",
    "docs/robustness.md": "Robustness",
    "docs/assumptions.md": "Assumptions",
    "docs/data_flow.md": "How data flows",
    "docs/comparison.md": "Other tools",
    "docs/benchmarks.md": "Benchmarks",
    "docs/scale.md": "Estimate for a whole exchange",
    "SECURITY.md": "Security",
}
PROJECT: Final = {
    "CONTRIBUTING.md": "Contributing",
    "CHANGELOG.md": "Changes",
    "data/README.md": "The samples",
}


def build(*, notebooks: bool = True) -> None:
    """Write all pages, and let mkdocs make the site of them; raise an error if anything is wrong.

    - ``notebooks``: whether to run the notebooks; otherwise their pages show only their code
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = repository_pages() | public_pages()
    pages |= tutorial_pages(run=notebooks)
    places = name_places(pages)
    check_public_names(places)
    for path, text in pages.items():
        write_page(path, link_page(path, text, places, pages.keys()))
    shutil.copytree(ROOT / "docs/pictures", PAGES / "docs/pictures", dirs_exist_ok=True)
    for name in ("site.css", "iframe-worker.js"):
        shutil.copy(ROOT / "docs" / name, PAGES)
    settings = {
        "INHERIT": os.path.relpath(ROOT / "docs/mkdocs.yml", PAGES.parent),
        "docs_dir": PAGES.name,
        "site_dir": SITE.name,
        "nav": navigation(pages),
    }
    config = PAGES.parent / "mkdocs.yml"
    config.write_text(yaml.safe_dump(settings, sort_keys=False))
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(config)]
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def repository_pages() -> dict[str, str]:
    """Return the pages that are files of the repository: path in the site -> text."""
    files = [*EXPLANATION, *PROJECT, "docs/how_to.md", "docs/install.md", "docs/glossary.md"]
    pages = {name: (ROOT / name).read_text() for name in files}
    for path in sorted((ROOT / "docs/reference").glob("*.md")):
        pages[f"docs/reference/{path.name}"] = path.read_text()
    for operation in OPERATIONS.values():
        path = f"docs/reference/{operation.topic}.md"
        heading = f"### Errors of {operation.function}\n"
        example = api_pages.example_section(operation.function)
        pages[path] = pages[path].replace(heading, f"{example}\n\n{heading}")
    pages["index.md"] = (ROOT / "README.md").read_text()
    others = {f"docs/{path.name}": path.read_text() for path in (ROOT / "docs").glob("*.md")}
    return others | pages


def public_pages() -> dict[str, str]:
    """Return the pages of public names, of figures and of the command line."""
    pages = api_pages.api_pages()
    pages["docs/reference/figures.md"] = api_pages.figures_page(draw_figures())
    pages["docs/reference/command_line.md"] = command_pages.command_page()
    return pages


def draw_figures() -> dict[str, str]:
    """Draw every figure on the tiny exchange, and return name -> path from the reference."""
    from tests.plots.figures import draw_figure
    from tests.plots.results import compute_results

    folder = PAGES / "docs/reference/figures"
    folder.mkdir(parents=True)
    results = compute_results(tk.local(seed=7, size="tiny", default=False))
    for name, result in results.items():
        draw_figure(name, result).savefig(folder / f"{name}.png", dpi=90)
    return {name: f"figures/{name}.png" for name in results}


def tutorial_pages(*, run: bool) -> dict[str, str]:
    """Return the notebooks as pages, with their outputs and figures."""
    sources = sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not run:
        return {f"notebooks/{path.stem}.md": notebook_code(path) for path in sources}
    tk.local(seed=7, size="demo", default=False).close()  # simulated once, for all kernels
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(execute_notebook, sources))
    return {f"notebooks/{path.stem}.md": text for path, text in zip(sources, texts, strict=True)}


def execute_notebook(path: Path) -> str:
    """Run a notebook in a process of its own, and return it as Markdown."""
    out = PAGES / "notebooks" / f"{path.stem}.md"
    command = [sys.executable, "-m", "nbconvert", "--to", "markdown", "--execute"]
    command += ["--output-dir", str(out.parent), str(path)]
    environment = {**os.environ, "TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"docs: {path.name} failed:\n{done.stderr}")
    text = re.sub(r"<style scoped>.*?</style>\n*", "", out.read_text(), flags=re.S)
    return re.sub(r'<table border="1" class="dataframe">', '<table class="dataframe">', text)


def notebook_code(path: Path) -> str:
    """Return a notebook as Markdown, without outputs."""
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(
        cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```"
        for cell in cells
    )


def name_places(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the section of each public name: name -> path of the page and anchor."""
    places = {
        operation.function: f"docs/reference/{operation.topic}.md#{operation.function}"
        for operation in OPERATIONS.values()
    }
    for name in api_pages.public_names():
        topic, _, inner = name.rpartition(".")
        page = f"docs/reference/tk_{topic or name}.md"
        if topic in ("", "errors") and f"## {inner} " in pages["docs/reference/tk_errors.md"]:
            places[name] = f"docs/reference/tk_errors.md#{inner}"
        elif name == "plots" or topic == "plots":
            places[name] = f"docs/reference/figures.md{f'#{inner}' if topic else ''}"
        elif page in pages:
            places[name] = f"{page}#{inner}" if topic else page
        else:
            places.setdefault(name, f"docs/reference/toolkit.md#{name}")
    return places


def check_public_names(places: Mapping[str, str]) -> None:
    """Raise SystemExit if a public name has no section; mkdocs checks that each anchor exists."""
    if missing := api_pages.public_names().keys() - places.keys():
        raise SystemExit(f"docs: no section for {', '.join(sorted(missing))}")


def link_page(path: str, text: str, places: Mapping[str, str], paths: Collection[str]) -> str:
    """Return a page with links that work in the site.

    - ``path``: its path in the site
    - ``text``: its text, with links between files of the repository
    - ``places``: public name -> path and anchor of its section
    - ``paths``: all pages of the site
    """
    folder = os.path.dirname(path)

    def fit_link(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if not target:
            return found[0]
        aim = os.path.normpath(os.path.join(folder, target))
        aim = "index.md" if aim == "README.md" else re.sub(r"^(notebooks/.*)\.\w+$", r"\1.md", aim)
        if aim in paths or (PAGES / aim).is_file() or aim.startswith("docs/pictures/"):
            return f"[{label}]({os.path.relpath(aim, folder or '.')}{anchor})"
        return label  # a file that the site does not contain

    text = re.sub(r"(?<!!)\[([^\[\]]*)\]\((?!https?:|data:)([^)#\s]*)(#[^)\s]+)?\)", fit_link, text)
    relative = {name: os.path.relpath(place, folder or ".") for name, place in places.items()}
    if path == "docs/analysis.md":
        text = link_topics(text, relative)
    return api_pages.link_names(space_lists(text), relative)


def link_topics(text: str, places: Mapping[str, str]) -> str:
    """Return the page of helpers with a link in the first cell of each row."""
    parts = re.split(r"^(## `tk\.(\w+)`)$", text, flags=re.M)
    for place in range(2, len(parts), 3):
        topic = parts[place]
        parts[place + 1] = re.sub(
            r"^\| `(\w+)` \|",
            lambda row, topic=topic: f"| [`{row[1]}`]({places[f'{topic}.{row[1]}']}) |",
            parts[place + 1],
            flags=re.M,
        )
        parts[place] = ""
    return "".join(parts)


def space_lists(text: str) -> str:
    """Return Markdown with an empty line before each list, as Python's Markdown needs it."""
    lines, is_code = [], False
    for line in text.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        starts = re.match(r"(- |\d+\. )", line) and not is_code
        if starts and before.strip() and not re.match(r"(- |\d+\. |\s)", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def navigation(pages: Mapping[str, str]) -> list[Any]:
    """Return the list of pages for mkdocs."""
    topics = [f"docs/reference/{name}.md" for name in reference_pages.topic_names()]
    modules = sorted(path for path in pages if path.startswith("docs/reference/tk_"))
    names = {path: path.split("tk_")[-1].removesuffix(".md") for path in modules}
    placed = {*EXPLANATION, "docs/install.md", "docs/glossary.md", "docs/how_to.md"}
    others = sorted(path for path in pages if re.fullmatch(r"docs/\w+\.md", path))
    others = [path for path in others if path not in placed]
    tutorials = sorted(path for path in pages if path.startswith("notebooks/"))
    return [
        {
            "Home": [
                "index.md",
                {"Install": "docs/install.md"},
                {"Glossary": "docs/glossary.md"},
                *({title: path} for path, title in PROJECT.items()),
            ]
        },
        {"Tutorials": tutorials},
        {"How do I ...?": "docs/how_to.md"},
        {
            "Reference": [
                {"Operations": ["docs/reference/index.md", *topics, "docs/reference/beyond.md"]},
                {"toolkit": "docs/reference/toolkit.md"},
                {"Helpers and modules": [{f"tk.{names[path]}": path} for path in modules]},
                {"Figures": "docs/reference/figures.md"},
                {"Command line": "docs/reference/command_line.md"},
            ]
        },
        {"Explanation": [*({title: path} for path, title in EXPLANATION.items()), *others]},
    ]


def write_page(path: str, text: str) -> None:
    """Write a page of the site."""
    target = PAGES / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


if __name__ == "__main__":
    began = time.perf_counter()
    build(notebooks="--no-notebooks" not in sys.argv)
    print(f"docs: {SITE.relative_to(ROOT)}/index.html, in {time.perf_counter() - began:.0f} s")
