"""Try an installed wheel: what its extras can do works, and the rest names the missing extra.

Called by .ci/wheel as ``try_wheel.py "[lab]"``, in an environment with these extras only.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import toolkit as tk
from toolkit.installation import install_command, notebook_folder

CONTENTS = {
    "analysis": {"analysis"},
    "plots": {"plots"},
    "reports": {"analysis", "plots", "reports"},
    "lab": {"analysis", "plots", "reports", "lab", "serve"},
    "scale": {"scale"},
    "serve": {"serve"},
}
CONTENTS["all"] = set().union(*CONTENTS.values())


def uses_of(folder: Path) -> dict[str, Callable[[], object]]:
    """Return one use of each extra."""
    user = tk.example.WHALE
    fills = tk.user_fills_by_time(user, 0)
    parts = tk.pnl.attribution(fills)

    def start_lab() -> None:
        from toolkit.installation import explain_missing

        with explain_missing("lab"):
            import jupyterlab  # noqa: F401

    def scale() -> None:
        kept = tk.archive.open(folder / "kept")
        kept.refresh(tk.user_fills_by_time, user, 0)
        tk.pnl.attribution(kept.scan("fills", engine="duckdb"))

    def serve() -> None:
        from toolkit.installation import explain_missing

        with explain_missing("serve"):
            import toolkit.service.http  # noqa: F401

    samples = tk.concat([tk.slippage_history("BTC", usd, "1d") for usd in (1e4, 1e5, 1e6)])
    return {
        "analysis": lambda: tk.slippage.fit(samples, draws=9),
        "plots": lambda: tk.plots.waterfall(parts).figure.savefig(folder / "waterfall.svg"),
        "reports": lambda: tk.reports.wallet(user, out=folder / "wallet.html"),
        "lab": start_lab,
        "scale": scale,
        "serve": serve,
    }


def main(extras: str) -> int:
    """Try every extra; return the number of faults."""
    installed = CONTENTS.get(extras.strip("[]"), set())
    tk.local(seed=7, size="tiny")
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for extra, use in uses_of(Path(folder)).items():
            try:
                use()
                found = "works"
            except (tk.MissingExtra, tk.ArchiveError) as error:
                named = f"extra {extra}" in str(error) and install_command(extra) in str(error)
                found = "names the extra" if named else f"says {error}"
            if found != ("works" if extra in installed else "names the extra"):
                faults.append(f"{extra}: {found}")
    if len(list(notebook_folder().glob("*.ipynb"))) < 13:
        faults.append("the notebooks are missing")
    print(f"wheel: {extras or 'core'}: {'; '.join(faults) or 'as it should be'}")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
