"""Widgets for JupyterLab: explore slippage and wallets, watch depth and TWAPs.

A widget computes a view from a request, with a plain function that fetches through a `Fetcher`, and
shows it. ``widget.code`` is the code of the view, and ``widget.view`` has its frames. Callbacks may
come on any thread. Views are computed on background threads; of several requests the last one is
shown.
"""

from toolkit.installation import explain_missing
from toolkit.public_names import publish_names

with explain_missing("plots"):
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

publish_names(__name__)
