"""The markets of a session's service: which market a name means."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import pandas as pd

from toolkit.client import Session, current_session
from toolkit.contract.dexes import coin_dex, strip_native_dex
from toolkit.contract.market_names import find_code, guess_code, is_code, plain_name, spot_names
from toolkit.contract.operations import Operation, known_operation
from toolkit.errors import Incomplete, InvalidKey, RateLimited, ServiceError, unsent
from toolkit.public_names import publish_as

_NAMED: Final = ("coin", "market")
"""Forms of the parameters that name a market."""


def with_codes(
    session: Session, operation: Operation, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a request with the codes of the markets that they name.

    A name in the form of a code stays as it is. For another name, the session asks its service
    once for the list of markets.
    """
    changed = dict(parameters)
    for name in (item.python for item in operation.parameters if item.dex_form in _NAMED):
        value = parameters.get(name)
        if isinstance(value, str):
            changed[name] = market_code(session, value)
        elif isinstance(value, list | tuple):
            changed[name] = [market_code(session, v) if isinstance(v, str) else v for v in value]
    return changed


def market_code(session: Session, name: str) -> str:
    """Return the code of the market that a name means; ``ALL`` and ``ALL:<dex>`` stay.

    Raises
    ------
    BadRequest
        If there is no such market.
    """
    code = strip_native_dex(name)
    if is_code(code) or code.partition(":")[0] == "ALL":
        return code
    markets = list_markets(session, name)
    return find_code(name, markets) if markets else guess_code(name)


def check_markets(session: Session, operation: Operation, parameters: Mapping[str, Any]) -> None:
    """Raise BadRequest if a request without rows names a market that does not exist."""
    coins = (item.python for item in operation.parameters if item.dex_form == "coin")
    for name in map(parameters.get, coins):
        if not isinstance(name, str):
            continue
        markets = list_markets(session, name)
        if not markets and not session.source.history:
            raise unsent(
                f"no rows came for the coin {name!r}, which the service does not list. Check the "
                "name"
            )
        if markets and (code := find_code(name, markets)) != name:
            raise unsent(f"there is no coin {name!r}; did you mean {code!r}?")


def with_readable_coins(rows: pd.DataFrame, session: Session) -> pd.DataFrame:
    """Return rows with the readable names of spot pairs in `coin`."""
    return rows.assign(coin=rows["coin"].map(market_names(rows["coin"], session=session)))


@publish_as("toolkit")
def market_names(coins: Iterable[str], *, session: Session | None = None) -> dict[str, str]:
    """Return the readable names of markets, by code: HYPE/USDC for @107.

    If a code is the number of a spot pair, the session asks its service once for the list of spot
    pairs, which costs 2 points. Perps and all other coins are their own names.

    Parameters
    ----------
    coins : str or iterable of str
        Codes, such as the column `coin` of a frame.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    dict
        Code -> name, each code once. A code is its own name if its pair is not listed, or if two
        pairs have the same name.

    Examples
    --------
    Another column of a frame. For a plot, map the column `coin` itself:

    >>> import pandas as pd
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> rows = pd.DataFrame({"coin": ["BTC", "@107"]})
    >>> names = tk.market_names(rows["coin"], session=session)
    >>> rows.assign(market=rows["coin"].map(names))["market"].tolist()
    ['BTC', 'HYPE/USDC']
    """
    codes = list(dict.fromkeys([coins] if isinstance(coins, str) else coins))
    names: dict[str, str] = {}
    if any(code.startswith("@") for code in codes):
        names = list_markets(current_session(session), "@")
    counts = Counter(names.values())
    return {code: names[code] if counts[names.get(code, "")] == 1 else code for code in codes}


def list_markets(session: Session, name: str) -> dict[str, str]:
    """Return code -> readable name of the spot pairs, or of the perps of the dex of a name.

    The session keeps them. They are empty if the service does not list them.
    """
    is_spot = "/" in name or name.startswith("@")
    dex = "" if is_spot else coin_dex(plain_name(name))
    place = "spot" if is_spot else f"perps of {dex}"
    if place in session.markets:
        return session.markets[place]
    world, found = session.world or {}, dict[str, str]()
    if "seed" in world and not is_spot:  # a simulated exchange lists the perps of every dex
        found = {coin: coin for coin in world["perp_coins"]}
    else:
        request = {"type": "spotMeta" if is_spot else "meta"} | ({"dex": dex} if dex else {})
        try:
            operation = session.api.adapt(known_operation(request["type"]))
            answer = msgspec.json.decode(session.ask(operation, request).content)
            if is_spot:
                found = spot_names(answer)
            else:
                names = [asset["name"] for asset in answer["universe"]]
                found = {name: name for name in names if coin_dex(name) == dex}
        except (InvalidKey, RateLimited):
            raise
        except (ServiceError, Incomplete, msgspec.DecodeError, LookupError, TypeError):
            pass
    session.markets[place] = found
    return found
