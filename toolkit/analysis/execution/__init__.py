"""Fills, orders and TWAPs."""
