"""``toolkit doctor``: check what this machine has, and say what to do."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from toolkit.cli.options import JsonOption
from toolkit.display import count_text
from toolkit.installation import (
    EXTRAS,
    clone_folder,
    extra_requirements,
    find_browser,
    find_shadow,
    install_command,
    package_version,
)

_LARGEST_SKEW: Final = 60  # seconds; ages such as "7d" count back from the clock
_LEAST_FREE: Final = 1 << 30  # bytes; the demo exchange and its answers need some 200 MB


class Check(NamedTuple):
    """The result of a check; its state is ``ok``, ``problem``, or ``note`` for what is optional."""

    name: str
    state: str
    found: str
    advice: str = ""


def doctor(
    archive: Annotated[str | None, typer.Option(help="Check this archive, too.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Ask this address, such as hyperliquid, one cheap question. A service gets the "
            "key, and says how many tokens it has counted."
        ),
    ] = None,
    exchange: Annotated[
        str | None,
        typer.Option(help="Ask the own API of this exchange, which needs no key: hyperliquid."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not ask the address for its clock.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check Python, libraries, extras, key, address, clock, cache, Jupyter and Chromium.

    No request with the key is sent, unless you pass --base-url. Exit code 1: something is wrong.
    """
    checks = [*_python_checks(), *_service_checks(offline=offline)]
    if base_url or exchange:
        checks.append(_answer_check(base_url, exchange))
    checks += [*_file_checks(archive), *_program_checks()]
    problems = [check for check in checks if check.state == "problem"]
    if as_json:
        typer.echo(json.dumps([check._asdict() for check in checks]))
    else:
        for check in checks:
            typer.echo(f"{check.state:8}{check.name:20}{check.found}")
            if check.advice:
                typer.echo(f"{'':28}-> {check.advice}")
        typer.echo("ready" if not problems else count_text(len(problems), "problem"))
    raise typer.Exit(1 if problems else 0)


def _check(
    name: str, found: str, wrong: str = "", advice: str = "", state: str = "problem"
) -> Check:
    """Return a check that is ok, or what is wrong and what to do."""
    return Check(name, state, wrong, advice) if wrong else Check(name, "ok", found)


def _python_checks() -> Iterator[Check]:
    place = clone_folder()
    yield Check("Python", "ok", f"{platform.python_version()} at {sys.executable}")
    if (found := package_version()) == "unknown":
        yield Check("toolkit", "problem", "not installed", "install it: docs/install.md")
        return
    yield Check("toolkit", "ok", f"{found}, {f'the clone {place}' if place else 'installed'}")
    every = f"all {len(extra_requirements(''))} core libraries"
    yield _check("libraries", every, _wrong_versions(""), "install the package again")
    if (shadow := find_shadow(Path.cwd())) is not None:
        found = f"{shadow} is imported instead of this package"
        yield Check("import", "problem", found, "rename it")
    for extra, purpose in EXTRAS.items():
        wrong = _wrong_versions(extra)
        wrong = wrong and f"{purpose}; {wrong}"
        yield _check(f"extra {extra}", purpose, wrong, install_command(extra), "note")


def _wrong_versions(extra: str) -> str:
    """Return the libraries of an extra that are missing or too old, with what is installed."""
    from packaging.requirements import Requirement

    wrong = []
    for item in map(Requirement, extra_requirements(extra)):
        try:
            found = version(item.name)
            if not item.specifier.contains(found, prereleases=True):
                wrong.append(f"{item.name} is {found}, not {item.specifier}")
        except PackageNotFoundError:
            wrong.append(f"{item.name} is missing")
    return "; ".join(wrong)


def _service_checks(*, offline: bool) -> Iterator[Check]:
    from toolkit.client.proxies import address_problem
    from toolkit.contract.apis import find_address

    missing = "" if os.environ.get("TOOLKIT_API_KEY") else "TOOLKIT_API_KEY is not set"
    advice = "only a live service needs one: export TOOLKIT_API_KEY=..."
    yield _check("key", "TOOLKIT_API_KEY is set", missing, advice, "note")
    address = os.environ.get("TOOLKIT_BASE_URL")
    if address and (named := find_address(address)):
        address = named[1]
    if not address:
        advice = 'tk.local() needs none; a live service: tk.connect("https://...")'
        yield Check("address", "note", "TOOLKIT_BASE_URL is not set", advice)
        return
    if problem := address_problem(address):  # its text may be a key
        yield Check("address", "problem", "TOOLKIT_BASE_URL is not valid", problem)
    elif offline:
        yield Check("address", "ok", f"{address}, not asked")
    else:
        yield from _clock_checks(address)


def _clock_checks(address: str) -> Iterator[Check]:
    """Ask an address for its clock, without the key and without points."""
    import httpx

    try:
        answer = httpx.head(address, timeout=10, follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        reason = str(error) or type(error).__name__
        yield Check("address", "problem", f"{address}: {reason}", "check TOOLKIT_BASE_URL")
        return
    yield Check("address", "ok", f"{address} answers")
    try:
        theirs = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        yield Check("clock", "note", f"{address} does not say its time")
        return
    if theirs.tzinfo is None:  # a date of HTTP is in UTC
        theirs = theirs.replace(tzinfo=UTC)
    seconds = abs((datetime.now(UTC) - theirs).total_seconds())
    found = f"within {_LARGEST_SKEW} s of the service"
    wrong = f"the clock differs from the service by {seconds:,.0f} s"
    wrong = wrong if seconds > _LARGEST_SKEW else ""
    yield _check("clock", found, wrong, "set the clock of this machine")


def _answer_check(base_url: str | None, exchange: str | None) -> Check:
    """Ask an address one question: its clock, or what the key has used."""
    import toolkit as tk

    try:
        with tk.connect(base_url, exchange=exchange, attempts=1, default=False) as session:
            if session.api.has_keys:
                answer = tk.info({"type": "apiUsage", "days": 30}, session=session)
                usage: Any = tk.frame("apiUsage", answer)
                tokens = float(usage["tokens_consumed"].sum())
                found = f"{tokens:,.6g} tokens in 30 days, {session.api.token_usd(tokens):,.2f} USD"
            else:
                tk.info({"type": "exchangeStatus"}, session=session)
                found = f"{session.api.points_per_minute:,} points a minute, without a key"
            return Check("answer", "ok", f"{session.base_url} answers; {found}")
    except (tk.ToolkitError, ValueError) as error:
        advice = "check --base-url and the key; the exchange's own API is --base-url hyperliquid"
        return Check("answer", "problem", str(error), advice)


def _file_checks(archive: str | None) -> Iterator[Check]:
    from toolkit.client import find_cache_folder

    folder, free = find_cache_folder("worlds"), 0
    wrong, advice = f"{folder} is not writable", "set XDG_CACHE_HOME"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if os.access(folder, os.W_OK):
            wrong, advice = "", "make room"
    if not wrong and free < _LEAST_FREE:
        wrong = f"{folder}: {free >> 20} MB are free"
    yield _check("cache", f"{folder}, {free >> 30} GB free", wrong, advice)
    if archive is None:
        return
    from toolkit.archive.archive import open_existing
    from toolkit.errors import ToolkitError

    try:
        table = open_existing(archive).status()
        rows = count_text(int(table["rows"].sum()), "row")
        yield Check("archive", "ok", f"{archive}: {len(table)} series, {rows}")
    except (ToolkitError, ValueError, OSError) as error:
        yield Check("archive", "problem", str(error))


def _program_checks() -> Iterator[Check]:
    try:
        yield Check("Jupyter", "ok", f"JupyterLab {version('jupyterlab')}")
    except PackageNotFoundError:
        yield Check("Jupyter", "note", "JupyterLab is missing", install_command("lab"))
    browser = find_browser() or ""
    advice = "reports as PDF and the browser tests need it (Debian: apt-get install chromium)"
    yield _check("Chromium", browser, "" if browser else "not found", advice, "note")
