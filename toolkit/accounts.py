"""Account values: how they are distributed, their leverage, how they change; and positioning."""

from toolkit.analysis.accounts.concentration import concentration, lorenz
from toolkit.analysis.accounts.positioning import positioning
from toolkit.analysis.accounts.value_transitions import migration
from toolkit.analysis.accounts.values import leverage, values
from toolkit.public_names import publish_names

__all__ = ["concentration", "leverage", "lorenz", "migration", "positioning", "values"]

publish_names(__name__)
