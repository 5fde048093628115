"""The public names of ``toolkit.reports``."""

from toolkit import reports


def test_dir_lists_public_names():
    assert dir(reports) == sorted(reports.__all__)
