"""Jedi, which completes code in notebooks, knows the types of the public functions."""

import jedi

import toolkit as tk

FRAME = "pandas.core.frame.DataFrame"
RESULTS = {
    "tk.user_fills('0x')": FRAME,
    "tk.batch_clearinghouse_states(['0x']).positions": FRAME,
    "tk.pnl.attribution(tk.user_fills('0x'))": FRAME,
    "tk.local()": "toolkit.client.session.Session",
}


def test_jedi_infers_results():
    lines = ["import toolkit as tk", *(f"result = {call}\nresult" for call in RESULTS)]
    script = jedi.Script("\n".join(lines))
    wrong = {
        call: found
        for line, (call, kind) in enumerate(RESULTS.items())
        if kind not in (found := {name.full_name for name in script.infer(2 * line + 3, 0)})
    }
    assert wrong == {}


def test_jedi_completes_public_names():
    completed = {found.name for found in jedi.Script("import toolkit as tk\ntk.").complete(2, 3)}
    assert set(tk.__all__) <= completed
