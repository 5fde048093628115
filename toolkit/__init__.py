"""A research toolkit for an exchange data query service."""
