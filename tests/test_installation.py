"""A missing library names its extra, and the command that fits the installation."""

import subprocess
import sys
from pathlib import Path

import pytest

import toolkit as tk
from toolkit import installation

WITHOUT = """
import sys
for name in ("matplotlib", "jinja2", "scipy"):
    sys.modules[name] = None
import toolkit as tk
session = tk.local(seed=7, size="tiny")
user = tk.example.WHALE
fills = tk.user_fills_by_time(user, "1d")
print(tk.pnl.attribution(fills)["fills"].item() == len(fills))
samples = [tk.slippage_history("BTC", usd, "2d") for usd in (1e4, 1e5, 1e6)]
uses = (
    lambda: tk.plots.waterfall,
    lambda: tk.reports.wallet,
    lambda: tk.slippage.fit(tk.concat(samples), draws=9),
)
for use in uses:
    try:
        use()
    except ImportError as error:
        print(type(error).__name__, error)
"""


def test_core_works_without_extras(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    first, *messages = done.stdout.splitlines()
    assert first == "True"
    for extra, message in zip(("plots", "reports", "analysis"), messages, strict=True):
        assert message.startswith("MissingExtra ")
        assert f"extra {extra}" in message
        assert installation.install_command(extra) in message


def test_command_installs_the_clone():
    assert installation.clone_folder() == Path(tk.__file__).parents[1]
    for extra in installation.EXTRAS:
        assert f"{installation.clone_folder()}[{extra}]" in installation.install_command(extra)


def test_other_import_error_is_not_changed():
    with pytest.raises(ModuleNotFoundError, match="nothing"), installation.explain_missing("lab"):
        import toolkit.nothing  # type: ignore[import-not-found]  # noqa: F401


def test_shadow_is_found(tmp_path):
    assert installation.find_shadow(tmp_path) is None
    (tmp_path / "toolkit.py").touch()
    assert installation.find_shadow(tmp_path) == tmp_path / "toolkit.py"
    (tmp_path / "toolkit.py").unlink()
    (tmp_path / "toolkit").mkdir()
    assert installation.find_shadow(tmp_path) is None  # an empty folder hides nothing
    (tmp_path / "toolkit" / "__init__.py").touch()
    assert installation.find_shadow(tmp_path) == tmp_path / "toolkit"
    assert installation.find_shadow(installation.clone_folder()) is None


def test_notebook_folder_has_notebooks():
    assert len(list(installation.notebook_folder().glob("*.ipynb"))) >= 13
