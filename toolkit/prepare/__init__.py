"""What helpers share: a frame of any library becomes columns, money, positions and groups."""
