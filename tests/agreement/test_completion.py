"""Jedi, which completes code in notebooks, knows the types of the public functions."""

import jedi
import pytest

import toolkit as tk

FRAME = "pandas.core.frame.DataFrame"
FILLS = "tk.user_fills('0x')"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (FILLS, FRAME),
        ("tk.user_fills_by_time('0x', '7d')", FRAME),
        ("tk.batch_clearinghouse_states(['0x']).positions", FRAME),
        (f"tk.pnl.attribution({FILLS})", FRAME),
        (f"tk.funding.sums({FILLS})", FRAME),
        (f"tk.concat([{FILLS}])", FRAME),
        ("tk.describe(tk.meta)", FRAME),
        ("tk.connect('http://localhost')", "toolkit.client.session.Session"),
        ("tk.local()", "toolkit.client.session.Session"),
    ],
)
def test_jedi_infers_result(code, name):
    script = jedi.Script(f"import toolkit as tk\nresult = {code}\nresult")
    assert name in {found.full_name for found in script.infer(3, 0)}


def test_jedi_completes_public_names():
    completed = {found.name for found in jedi.Script("import toolkit as tk\ntk.").complete(2, 3)}
    assert set(tk.__all__) <= completed
