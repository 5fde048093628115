"""What completion offers of ``toolkit.plots``."""

from toolkit import plots


def test_dir_lists_the_public_names_alone() -> None:
    assert dir(plots) == sorted(plots.__all__)
