"""The agents: who trades and moves money on the exchange, and for what reason."""
