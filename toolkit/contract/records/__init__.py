"""The records of the wire, by topic; each is a `msgspec.Struct`."""

# ruff: noqa: F403 - each module has nothing but records

from toolkit.contract.records.accounts import *
from toolkit.contract.records.fills import *
from toolkit.contract.records.ledger import *
from toolkit.contract.records.market import *
from toolkit.contract.records.orders import *
from toolkit.contract.records.record import *
from toolkit.contract.records.snapshots import *
from toolkit.contract.records.spot import *
from toolkit.contract.records.staking import *
from toolkit.contract.records.trades import *
