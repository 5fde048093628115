"""A research toolkit for an exchange's data query service: typed, complete DataFrames.

>>> import toolkit as tk
>>> session = tk.local(seed=7, size="tiny")     # the whole service in this process, simulated
>>> user = session.world["users"][0]
>>> fills = tk.user_fills_by_time(user, "30d")
>>> tk.provenance(fills)["complete"]
'yes'

Every operation of the service is a function here, its type in snake case. ``tk.describe()``
lists them. ``tk.connect(base_url, api_key)`` asks a live service instead.
"""

import lazy_loader

_import_public_name, _list_public_names, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("exchange-toolkit")
    return _import_public_name(name)


def __dir__() -> list[str]:
    return _list_public_names()
