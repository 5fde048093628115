"""Account values, leverage and liquidations."""
