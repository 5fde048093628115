import pytest

from toolkit.service import Upstream


@pytest.mark.parametrize("address", ["", "host", "ftp://host", "http://"])
def test_invalid_upstream_address_is_refused(address):
    with pytest.raises(ValueError, match="is not an address"):
        Upstream(address)
