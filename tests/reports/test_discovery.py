"""What completion offers of ``toolkit.reports``."""

from toolkit import reports


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(reports) == sorted(reports.__all__)
