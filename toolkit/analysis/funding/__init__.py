"""Funding payments and rates."""
