"""The APIs that answer the operations: the query service, and the exchange's own API.

The exchange's own API needs no key. It mirrors some operations of the service with other limits:
no cursors, no filters, fixed pages, and a weight that grows with the rows of an answer.
docs/live_service.md, sections 12 to 15. Nobody has proved these limits: they are documented, or
were observed by others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolkit.contract.operations import Operation, Parameters
from toolkit.errors import unsent

_LISTS: Final = {"most_rows": 500, "row_points": 20}
_LATEST: Final = {"most_rows": 2_000, "row_points": 20}
_CHEAP: Final = {"points": 2}

# ASSUMED: An operation that is not listed costs 20 points, as most requests do.
_EXCHANGE: Final[dict[str, dict[str, Any]]] = {
    **dict.fromkeys(("userFills", "historicalOrders", "userTwapSliceFills"), _LATEST),
    **dict.fromkeys(("delegatorHistory", "delegatorRewards"), _LATEST),
    **dict.fromkeys(("userNonFundingLedgerUpdates", "userFunding"), _LISTS),
    **dict.fromkeys(("userBorrowLendInterest", "fundingHistory"), _LISTS),
    **dict.fromkeys(("l2Book", "allMids", "orderStatus", "exchangeStatus"), _CHEAP),
    **dict.fromkeys(("clearinghouseState", "spotClearinghouseState"), _CHEAP),
    "userFillsByTime": {**_LATEST, "paging": "forward", "reach": 10_000},
    "candleSnapshot": {"row_points": 60, "reach": 5_000},
    "userRole": {"points": 60},
}
"""Type of an operation -> what is different. The other columns stay."""

_SERVICE_SERIES: Final = ("slippageHistory", "validatorAprHistory")
"""Operations that only the service has, although the table does not mark them."""

# ASSUMED: Every state call costs 0.1 token, the most that is known of them.
_STATE_TOKENS: Final = 0.1
_STATES: Final = (
    "batchClearinghouseStates",
    "batchPortfolioStates",
    "clearinghouseState",
    "portfolioState",
    "spotClearinghouseState",
)
"""The operations of the service that cost a part of a token. Every other request costs one."""

_EXCHANGE_LACKS: Final = ("builder", "venue", "cursor", "limit")
"""The parameters, by their names on the wire, that the exchange's own API does not have.

Nor does it have the filter of fills by dex."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API: where it is, what it has, and what it costs.

    - ``name``: its name in `toolkit.connect`
    - ``title``: its name in sentences
    - ``addresses``: name of a network -> address; the first is the usual one
    - ``has_keys``: whether a key may be sent to it
    - ``points_per_minute``: its quota for one machine; None if it depends on the key
    - ``changes``: type -> the columns of `Operation` that are different; None if nothing is
    - ``usd_per_token``: price of a token of its monthly meter; 0 if it has none
    - ``lacks``: the fields, by their names on the wire, that its rows do not have
    """

    name: str
    title: str
    addresses: Mapping[str, str]
    has_keys: bool
    points_per_minute: int | None = None
    changes: Mapping[str, Mapping[str, Any]] | None = None
    usd_per_token: float = 0.0
    lacks: tuple[str, ...] = ()
    _adapted: dict[str, Operation] = field(default_factory=dict, repr=False, compare=False)

    def adapt(self, operation: Operation) -> Operation:
        """Return the row of an operation as this API has it.

        Raise BadRequest if this API does not have the operation; nothing is sent.

        >>> from toolkit.contract.operations import OPERATIONS
        >>> EXCHANGE.adapt(OPERATIONS["userFillsByTime"]).paging
        'forward'
        """
        if self.changes is None:
            return operation
        view = operation.view or operation.type
        if view in self._adapted:
            return self._adapted[view]
        is_own = operation.own or operation.add_on or operation.unpublished
        if is_own or operation.type in _SERVICE_SERIES:
            raise unsent(
                f"{self.title} does not have {operation.type}",
                operation.type,
                f"{SERVICE.title.capitalize()} has it: tk.connect({SERVICE.name!r}) with a key, "
                "or tk.local() for simulated data",
            )
        kept = tuple(
            replace(item, unless="")
            for item in operation.parameters
            if item.name not in _EXCHANGE_LACKS and item.dex_form != "fills"
        )
        names = {item.python for item in kept}
        self._adapted[view] = replace(
            operation,
            parameters=kept,
            subject=tuple(name for name in operation.subject if name in names),
            since="",
            gaps=(),
            limit=None,
            **{"points": 20, **self.changes.get(operation.type, {})},
        )
        return self._adapted[view]

    def tokens(self, type: str, requests: int = 1) -> float | None:
        """Return the tokens that requests of a type take from the month; None without this meter.

        >>> SERVICE.tokens("userFillsByTime", 3), EXCHANGE.tokens("userFillsByTime")
        (3.0, None)
        """
        if not self.usd_per_token:
            return None
        return requests * (_STATE_TOKENS if type in _STATES else 1.0)

    def token_usd(self, tokens: float) -> float:
        """Return the price of tokens in USD, for those of the plan and for further ones."""
        return tokens * self.usd_per_token

    def remove_fields(self, content: bytes) -> bytes:
        """Return an answer of the service without the fields that the rows of this API lack.

        >>> EXCHANGE.remove_fields(b'[{"tid":1,"txIndex":3}]')
        b'[{"tid":1}]'
        """
        for name in self.lacks:  # whole numbers; no text has a quote that is not escaped
            item = rb'"%b":\d+' % name.encode()
            content = re.sub(rb",%b|%b," % (item, item), b"", content)
        return content

    def adapt_call(
        self, operation: Operation, parameters: Parameters
    ) -> tuple[Operation, dict[str, Any]]:
        """Return the row of an operation as this API has it, and the parameters that it has.

        - ``parameters``: the parameters, in Python names or in wire names

        Raise BadRequest if another parameter has a value. It would be ignored in silence: all rows
        would come, and look like a filtered answer.
        """
        adapted, kept = self.adapt(operation), dict(parameters)
        for item in operation.parameters:
            is_cut_here = item.python == "max_rows" and item.name not in kept
            if item.name in adapted.by_wire or is_cut_here:
                continue
            for name in (item.python, item.name):
                if kept.pop(name, None) not in (None, item.default):
                    raise unsent(
                        f"{self.title} has no parameter {name} for {operation.type}",
                        operation.type,
                        "Leave it out and select rows of the frame. Or connect to "
                        f"{SERVICE.title}, which has it",
                    )
        return adapted, kept


SERVICE: Final = Api(
    "hydromancer",
    "the query service",
    {"mainnet": "https://api.hydromancer.xyz", "testnet": "https://api-testnet.hydromancer.xyz"},
    has_keys=True,
    usd_per_token=300 / 500_000,  # and 60 / 100,000 for further ones: the same
)
"""The query service of the specification."""

EXCHANGE: Final = Api(
    "hyperliquid",
    "the exchange's own API",
    {"mainnet": "https://api.hyperliquid.xyz", "testnet": "https://api.hyperliquid-testnet.xyz"},
    has_keys=False,
    points_per_minute=1_200,
    changes=_EXCHANGE,
    lacks=("txIndex",),
)
"""The exchange's own public API."""

_EXCHANGE_DOMAINS: Final = [
    address.removeprefix("https://api") for address in EXCHANGE.addresses.values()
]

APIS: Final = {api.name: api for api in (SERVICE, EXCHANGE)}
"""Every API by its name."""

NAMES: Final = tuple(
    name if network == "mainnet" else f"{name}-{network}"
    for name, api in APIS.items()
    for network in api.addresses
)
"""The names of all addresses, as `find_address` reads them."""


def find_address(name: str) -> tuple[Api, str] | None:
    """Return the API and the address of a name, such as ``hyperliquid-testnet``; None if unknown.

    >>> find_address("hyperliquid-testnet")[1]
    'https://api.hyperliquid-testnet.xyz'
    """
    short, _, network = name.strip().lower().partition("-")
    api = APIS.get(short)
    address = api.addresses.get(network or "mainnet") if api else None
    return (api, address) if api and address else None


def api_of_host(host: str, *, is_exact: bool = True) -> Api | None:
    """Return the API that is at a host; None for any other host.

    Every host of the exchange's domains counts as its API, so that none gets a key. The service is
    only at its own two addresses.

    - ``host``: the name of the host
    - ``is_exact``: whether the address has nothing but https:// and the host

    >>> api_of_host("API.hyperliquid.xyz.") is EXCHANGE
    True
    """
    host = host.lower().rstrip(".")
    if any(f".{host}".endswith(domain) for domain in _EXCHANGE_DOMAINS):
        return EXCHANGE
    return SERVICE if is_exact and f"https://{host}" in SERVICE.addresses.values() else None
