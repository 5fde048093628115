"""Reports: self-contained HTML files; the same data gives the same bytes."""

from toolkit.installation import explain_missing
from toolkit.public_names import publish_names

with explain_missing("reports"):
    from toolkit.reports import blocks
    from toolkit.reports.build import template
    from toolkit.reports.example import example_account
    from toolkit.reports.standard_reports import (
        builder,
        comparison,
        market,
        market_quality,
        run,
        wallet,
    )

__all__ = [
    "blocks",
    "builder",
    "comparison",
    "example_account",
    "market",
    "market_quality",
    "run",
    "template",
    "wallet",
]

publish_names(__name__)
