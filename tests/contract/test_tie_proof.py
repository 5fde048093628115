"""The proof of a tie: by hand, for a tie with and without rows that have to follow it."""

import pytest

from toolkit.contract.tie_proof import TieProof

BEFORE, TIE, NEXT, LAST = (1, 7), (2, 3), (2, 4), (5, 0)


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ([BEFORE, TIE, TIE], "complete"),
        ([BEFORE, TIE, TIE, NEXT], "complete"),
        ([BEFORE, BEFORE, BEFORE], "unknown"),
        ([BEFORE, BEFORE, TIE], "unknown"),
        # The page has no more rows than the tie, so the service may have a limit of two rows.
        ([TIE, TIE], "cut"),
        ([BEFORE, TIE], "cut"),
        ([], "cut"),
        ([BEFORE, TIE, TIE, TIE], "cut"),
        ([TIE, TIE, TIE], "cut"),
    ],
)
@pytest.mark.parametrize("limit", [3, 4, 9])
def test_last_tie_needs_longer_page(keys, shown, limit):
    """The limit does not matter: the next page shows what follows."""
    assert TieProof(TIE, 2, None, {}).check(keys, limit) == shown


@pytest.mark.parametrize(
    ("keys", "limit", "shown"),
    [
        ([TIE, TIE, NEXT], 4, "complete"),
        ([BEFORE, TIE, TIE, NEXT, NEXT], 6, "complete"),
        ([BEFORE, TIE, TIE, NEXT, LAST], 5, "complete"),
        ([TIE, TIE, NEXT, LAST, LAST], 5, "complete"),
        # The page is full, and its last rows may be a part of the only tie that follows.
        ([TIE, TIE, NEXT], 3, "unknown"),
        ([TIE, TIE, NEXT, NEXT], 4, "unknown"),
        # The page is full before the rows that follow.
        ([BEFORE, BEFORE, TIE, TIE], 4, "unknown"),
        ([BEFORE, BEFORE, BEFORE, TIE], 4, "unknown"),
        ([BEFORE, BEFORE, BEFORE], 3, "unknown"),
        ([BEFORE, TIE, TIE], 2, "unknown"),
        # There is room, but the tie or the rows after it did not come.
        ([BEFORE, BEFORE, TIE, TIE], 5, "cut"),
        ([TIE, NEXT], 3, "cut"),
        ([BEFORE, TIE, NEXT, LAST], 5, "cut"),
        ([], 5, "cut"),
        ([TIE, TIE, TIE], 3, "cut"),
        ([TIE, TIE, TIE, NEXT, LAST], 9, "cut"),
    ],
)
def test_earlier_tie_needs_followers(keys, limit, shown):
    assert TieProof(TIE, 2, 2, {}).check(keys, limit) == shown
