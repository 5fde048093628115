"""Estimates with intervals: bootstrap, shrinkage, and the class of their results."""
