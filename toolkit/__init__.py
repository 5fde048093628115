"""A research toolkit for an exchange's data query service: typed, complete DataFrames.

>>> import toolkit as tk
>>> session = tk.local(seed=7, size="tiny")     # a simulated service in this process
>>> user = session.world["users"][0]
>>> fills = tk.user_fills_by_time(user, "30d")
>>> tk.provenance(fills)["complete"]
'yes'

Every operation of the service is a function here, its type in snake case. ``tk.describe()``
lists them. ``tk.connect(base_url, api_key)`` asks a live service instead.
"""

from difflib import get_close_matches
from functools import partial

import lazy_loader

from toolkit import drawing

_import_public_name, _list_public_names, __all__ = lazy_loader.attach_stub(__name__, __file__)
drawing.load_with(partial(_import_public_name, "plots"))


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("exchange-toolkit")
    if name not in __all__ and not name.startswith("_"):
        near = get_close_matches(name, __all__, n=3)
        last = name.rpartition("_")[2]
        near = list(
            dict.fromkeys([*near, *(public for public in __all__ if last in public.split("_"))])
        )
        hint = (
            f"Did you mean {' or '.join(near[:5])}?"
            if near
            else "tk.describe() lists all functions"
        )
        raise AttributeError(f"toolkit has no {name!r}. {hint}", name=name)
    return _import_public_name(name)


def __dir__() -> list[str]:
    return _list_public_names()
