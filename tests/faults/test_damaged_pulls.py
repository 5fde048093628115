"""Every damaged pull that is wrong in silence has a reason why the client cannot notice it."""

import stamina

import toolkit as tk
from tests.faults.damaged_pulls import REASONS, damage_pulls
from tests.faults.matrix import Matrix


def test_every_silent_pull_has_known_reason():
    with stamina.set_testing(True, attempts=6):
        matrix = Matrix(tk.local(seed=7, size="tiny", default=False), confirm_end=True)
        pulls = list(damage_pulls(matrix))
    assert len(pulls) == 60
    silent = [pull for pull in pulls if pull.outcome.name == "silent"]
    assert not [pull for pull in pulls if pull.outcome.name == "endless"]
    for pull in silent:
        assert pull.reasons <= REASONS.keys() - {"unconfirmed"}, pull
    assert len(silent) <= 3
