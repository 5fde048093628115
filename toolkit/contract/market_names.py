"""Names of markets: as people write them, and as the exchange does.

The code of a market is what rows have in `coin`: ``BTC``, ``xyz:TSLA``, ``@107``, ``PURR/USDC``.
People also write ``btc``, ``$BTC``, ``BTC-PERP``, ``xyz:tsla`` and ``HYPE/USDC``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from toolkit.contract.dexes import coin_dex, join_coin, strip_native_dex
from toolkit.errors import BadRequest, unsent

_CODE: Final = re.compile(r"([a-z0-9]+:)?k?[A-Z0-9]+|[@#]\d+")


def is_code(name: str) -> bool:
    """Return whether a name has the form of a code, so that it needs no list of markets.

    >>> [name for name in ("kPEPE", "xyz:TSLA", "@107", "btc", "BTC-PERP", "HYPE/USDC")
    ...  if is_code(name)]
    ['kPEPE', 'xyz:TSLA', '@107']
    """
    return _CODE.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """Return a name without what people add to it, in lower case.

    >>> [plain_name(name) for name in ("BTC-PERP", "$eth", "main:BTC", "HYPE/USDC")]
    ['btc', 'eth', 'btc', 'hype/usdc']
    """
    name = name.strip().removeprefix("$").casefold()
    return strip_native_dex(re.sub(r"[-_ ]perp$", "", name))


def guess_code(name: str) -> str:
    """Return the likely code of a perp, for a service that does not list its perps.

    >>> guess_code("BTC-PERP"), guess_code("xyz:tsla")
    ('BTC', 'xyz:TSLA')
    """
    plain = plain_name(name)
    return join_coin(coin_dex(plain), plain.rpartition(":")[2].upper())


def find_code(name: str, markets: Mapping[str, str]) -> str:
    """Return the code of the one market that a name means.

    - ``name``: the name
    - ``markets``: code -> readable name

    Raise BadRequest with similar names if there is no such market, or there are several.

    >>> find_code("hype/usdc", {"BTC": "BTC", "@107": "HYPE/USDC"})
    '@107'
    """
    if name in markets:
        return name
    plain = plain_name(name)
    found = [
        code
        for code, readable in markets.items()
        if plain in (code.casefold(), readable.casefold())
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise unsent(f"the coin {name!r} may be {' or '.join(found)}: use one of these")
    raise unsent(f"there is no coin {name!r}; {suggest_names(name, list(markets.values()))}")


def code_among(name: str, codes: Iterable[str]) -> str:
    """Return the one of some codes that a name means; without such a code, the name itself.

    >>> code_among("btc-perp", ["BTC", "ETH"]), code_among("nope", ["BTC"])
    ('BTC', 'nope')
    """
    try:
        return find_code(name, {code: code for code in codes})
    except BadRequest:
        return name


def suggest_names(name: str, names: Sequence[str], most: int = 8) -> str:
    """Return the names that differ only in case or dex, or similar ones, or else the first ones.

    >>> suggest_names("tsla", ["BTC", "xyz:TSLA"]), suggest_names("BTX", ["BTC", "ETH"])
    ("did you mean 'xyz:TSLA'?", "did you mean 'BTC'?")
    """
    bare = plain_name(name).rpartition(":")[2]
    plain = {other: plain_name(other).rpartition(":")[2] for other in names}
    alike = [other for other in names if plain[other] == bare]
    near = alike or [
        other
        for close in get_close_matches(bare, plain.values(), n=3)
        for other in names
        if plain[other] == close
    ]
    if near:
        return f"did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?"
    shown = ", ".join(repr(name) for name in names[:most])
    return f"choose one of {shown}" + (", ..." if len(names) > most else "")


def spot_names(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return code -> readable name of the spot pairs in an answer of `spotMeta`.

    >>> tokens = [{"name": "USDC", "index": 0}, {"name": "HYPE", "index": 150}]
    >>> spot_names({"tokens": tokens, "universe": [{"name": "@107", "tokens": [150, 0]}]})
    {'@107': 'HYPE/USDC'}
    """
    tokens = {token["index"]: token["name"] for token in meta["tokens"]}
    pairs: Iterable[Mapping[str, Any]] = meta["universe"]
    return {pair["name"]: "/".join(tokens[index] for index in pair["tokens"]) for pair in pairs}
