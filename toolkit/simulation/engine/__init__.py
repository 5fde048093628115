"""The engine: what the exchange knows, its order books, and the rules of its accounts."""
