"""A failing network between a real client and a real service, drawn from a seed."""

from collections import Counter

import toolkit as tk
from toolkit.client import open_session
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas

SECRET = "a-secret"
REFUSED = ("status 429", "status 500", "status 502")
BROKEN = ("refused", "reset", "cut", "short", "stall")


def served(store, inclusive):
    """Return the service of a store."""
    return application_of(store, KeyQuotas([AcceptedKey("test", SECRET)]), inclusive=inclusive)


def failing(application, share):
    """Return a session on a service in this process, through a failing network."""
    network = tk.testing.faulty(
        InProcessTransport(application), (*REFUSED, *BROKEN), share=share, seed=3
    )
    session = open_session(
        "http://service.test", SECRET, transport=network, simulated=True, attempts=12, default=False
    )
    return session, network


def failures(network):
    """Return how often each failure occurred."""
    return Counter(fault.name for fault in network.injected)
