# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/osd-module.md is what the docstrings say, every public name has one, and the examples in them
run: next to the data, as a job of a real target, and at a client.
"""

from __future__ import annotations

import builtins
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyosd
import pyosd.osd as osd
from tests.serving import Serving
from tools.moduledoc import documented, manual

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "osd-module.md"
ARGS = ["one", "two"]

# The same at both ends.  Each docstring has a partition of its own.
RUN = """
import doctest, osd
total = 0
for name, text in EXAMPLES.items():
    p = osd.partition().create()
    u = osd.userobject(p.partition_id).create()
    u.data.write("one\\ntwo\\nthree\\n")
    names = {"osd": osd, "p": p, "u": u, "url": URL}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert not failed, name
    begin_anew()
    total += tried
    if p.exists():
        p.remove(contents=True)
print(total)
"""

CLIENT = """
import os, sys
sys.path.insert(0, {root!r})
import pyosd, pyosd.osd as osd
sys.modules["osd"] = osd
URL = os.environ["IOSD_TARGET"]
with pyosd.connect(URL) as session:
    def begin_anew():
        osd.use(session, {args!r})
    begin_anew()
    exec(sys.stdin.read())
"""

# What no script can bring about by itself, and what has nothing to call.
BUILTINS = set(dir(builtins))
WITHOUT_EXAMPLE = {
    "StorageError",
    "Conflict",
    "Transport",
    "call",
    "open",
    "ObjectChange",
    "ObjectChange.options",
    "PathName",
    "StageInput",
    "StageInput.options",
}


SANDBOX = """
URL = None
def begin_anew(): pass
"""
CLIENT_ONLY = {"use"}


def code(without: set[str]) -> str:
    """A script that runs the examples."""
    examples = {name: text for name, _, text, _ in documented() if ">>>" in text}
    kept = {name: text for name, text in examples.items() if name not in without}
    return f"EXAMPLES = {kept!r}\n{RUN}"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == manual(), "run: python -m tools.moduledoc >docs/osd-module.md"


def test_every_name_is_documented() -> None:
    texts = {name: text for name, _, text, _ in documented()}
    assert {name for name in texts if "." not in name} == set(osd.__all__)
    for name, text in texts.items():
        assert text, name
        plain = text == "True." or name.startswith(("Transport.", "Context."))
        assert plain or ">>>" in text or name in WITHOUT_EXAMPLE, name


def test_errors_named_in_docstrings_exist() -> None:
    for name, _, text, _ in documented():
        raises = text.partition("Raises:")[2].partition("\n\n")[0]
        kinds = {each for each in re.findall(r"\b[A-Z]\w+", raises)} - {
            "JSON",
            "UnsupportedOperation",
        }
        assert not [each for each in kinds if not hasattr(osd, each) and each not in BUILTINS], name


def test_help_reads_well() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import pyosd.osd; help(pyosd.osd)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PAGER": "cat", "TERM": "dumb", "MANPAGER": "cat"},
    ).stdout
    text = inspect.getdoc(osd)
    assert text and text.splitlines()[0] in shown
    for name in osd.__all__:
        if name not in ("args", "zone", "job", "array", "array_index", "over"):
            assert f"class {name}(" in shown or f"    {name}(" in shown, name


@pytest.mark.tgtd
def test_examples_next_to_the_data(serving: Serving) -> None:
    with serving.connect() as target:
        job = target.exec(SANDBOX + code(CLIENT_ONLY), zone=pyosd.ROOT, args=ARGS)
        status = job.wait(60)
        assert status.state is pyosd.JobState.COMPLETED, job.output().decode() + job.traceback()
        assert int(job.output()) > 100


@pytest.mark.tgtd
def test_examples_at_a_client(serving: Serving) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT.format(root=str(ROOT), args=ARGS)],
        input=code(set()),
        env=os.environ | {"IOSD_TARGET": serving.url},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 100
