"""Performance: returns, the figures that describe them, and rankings of accounts."""
