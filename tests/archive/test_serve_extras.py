"""Operations beyond the specification on a served archive: a true answer, or status 400."""

import warnings

import pytest

import toolkit as tk
from toolkit.archive import open as open_archive
from toolkit.errors import IncompleteWarning


@pytest.fixture(scope="module")
def tiny():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def archive(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    users = tiny.world["users"]
    opened = open_archive(folder)
    opened.refresh(tk.batch_clearinghouse_states, users[:2], session=tiny)
    opened.refresh(tk.meta_and_asset_ctxs, session=tiny)
    return folder


def test_serve_clearinghouse_state(tiny, archive):
    user, *_, other = tiny.world["users"]
    request = {"type": "clearinghouseState", "user": user}
    with tk.local(archive=archive, default=False) as session:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert tk.info(request, session=session) == tk.info(request, session=tiny)
        with pytest.warns(IncompleteWarning, match="some rows may be missing"):
            tk.info({**request, "user": other}, session=session)


def test_mids_are_computed_with_warning(tiny, archive):
    with (
        tk.local(archive=archive, default=False) as session,
        pytest.warns(IncompleteWarning, match="allMids is computed from the rows in the archive"),
    ):
        mids = tk.info({"type": "allMids"}, session=session)
    whole = tk.info({"type": "allMids"}, session=tiny)
    assert mids == {coin: whole[coin] for coin in mids}
    assert "BTC" in mids


@pytest.mark.parametrize("type_", ["userFees", "candleSnapshot", "spotMeta", "portfolio"])
def test_serve_refuses_uncomputable_answers(tiny, archive, type_):
    request = {
        "type": type_,
        "user": tiny.world["users"][0],
        "req": {"coin": "BTC", "interval": "1h", "startTime": 0},
    }
    with (
        tk.local(archive=archive, default=False) as session,
        pytest.raises(tk.BadRequest, match="the data from which it is computed are not in"),
    ):
        tk.info(request, session=session)
