"""Widgets for JupyterLab: explore slippage and wallets, watch depth and TWAPs.

Each computes a view from what was asked (a plain function, which asks through a callable that it
is given) and shows it. What a widget shows can be had as code (``widget.code``) and as frames
(``widget.view``). Callbacks may come on any thread: views are computed beside the kernel's main
thread, and of several requests the last one wins.
"""

from toolkit.widgets.live_monitor import LiveMonitor, live_monitor
from toolkit.widgets.slippage_explorer import SlippageExplorer, slippage_explorer
from toolkit.widgets.wallet_explorer import WalletExplorer, wallet_explorer

__all__ = [
    "LiveMonitor",
    "SlippageExplorer",
    "WalletExplorer",
    "live_monitor",
    "slippage_explorer",
    "wallet_explorer",
]


def __dir__() -> list[str]:
    return list(__all__)
