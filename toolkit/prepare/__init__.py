"""What helpers share: a frame of any library becomes columns, money, positions and groups."""

from toolkit.prepare.fills import Fills, fills

__all__ = ["Fills", "fills"]
