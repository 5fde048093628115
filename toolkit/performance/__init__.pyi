from ._leaderboard import leaderboard as leaderboard
from ._returns import returns as returns
from ._sheet import sheet as sheet
from ._sheet_tables import trip_sheet as trip_sheet
from ._skill import Skill as Skill
from ._skill import skill as skill
from ._vaults import vault_depositors as vault_depositors
from ._vaults import vault_shares as vault_shares
