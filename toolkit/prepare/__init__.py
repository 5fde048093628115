"""What helpers share: a frame of any library becomes columns, money, positions and groups."""

from toolkit.prepare.fills import Fills, fills
from toolkit.public_names import publish_names

__all__ = ["Fills", "fills"]

publish_names(__name__)
