"""Builders: revenue, users and routing."""
