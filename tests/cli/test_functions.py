# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd fn`: functions from the command line, on a target that requires credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd.types import ObjectRef
from tests.cli.conftest import Run
from tests.machine import unavailable
from tests.serving import sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

COUNT = """
import osd

def main(args):
    return {"words": len(osd.zone.data.read().split()), "args": args}

def shout(args):
    return args.upper() if args else b""

def fails(args):
    raise ValueError("no such thing")
"""


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)


@pytest.fixture
def count(osd: Run, tmp_path: Path) -> Iterator[Path]:
    """The file of a function that is stored and active."""
    file = tmp_path / "count.py"
    file.write_text(COUNT)
    methods = ("--method", "main", "--method", "shout", "--method", "fails")
    osd("fn", "put", file, "--access", "read", *methods, "--description", "counts words")
    yield file
    osd("fn", "rm", "count")


def test_call(osd: Run, count: Path, obj: ObjectRef) -> None:
    called = ("fn", "call", "count", "--zone", obj)
    assert json.loads(osd(*called).stdout) == {"words": 4, "args": None}
    assert json.loads(osd(*called, "--", "-a", "b").stdout)["args"] == ["-a", "b"]
    assert json.loads(osd(*called, "--json", '{"a": [1]}').stdout)["args"] == {"a": [1]}
    assert json.loads(osd(*called, "-o", "json").stdout) == {
        "schema": "iosd.call/1",
        "result": {"words": 4, "args": None},
    }
    shouted = osd(*called, "--method", "shout", "--input", "-", data=b"ab\n")
    assert shouted.stdout_bytes == b"AB\n"
    osd(*called, "--json", "1", "--", "two", code=2)
    osd(*called, "--json", "{", code=2)


def test_an_absent_pool(osd: Run, tmp_path: Path) -> None:
    file = tmp_path / "never.py"
    file.write_text("def main(args):\n    return 1\n")
    words = (
        ("fn", "put", file),
        ("fn", "stock", "gzip"),
        ("reductionist", "--listen", "127.0.0.1:0"),
    )
    for each in words:
        said = osd(*each, "--pool", "none", code=1).stderr
        assert said == "osd: the target has no pool 'none'; it has: default\n"
    osd("fn", "show", "never", code=66)


def test_a_call_that_fails(osd: Run, count: Path, obj: ObjectRef) -> None:
    failed = osd("fn", "call", "count", "--zone", obj, "--method", "fails", code=10)
    assert "ValueError: no such thing" in failed.stderr and not failed.stdout
    said = osd("fn", "call", "nobody", code=66).stderr
    assert said == "osd: no active function has the name 'nobody'\n"
    osd("fn", "call", "count", "--zone", "0x7777000000/0x10000", code=66)


def test_a_record_only_if_wanted(osd: Run, count: Path, obj: ObjectRef) -> None:
    partition = f"{obj.partition_id:#x}"
    osd("fn", "call", "count", "--zone", obj)
    assert "count" not in osd("ps", partition).stdout
    osd("fn", "call", "count", "--zone", obj, "--record")
    assert "count" in osd("ps", partition).stdout


def test_log(osd: Run, count: Path, obj: ObjectRef) -> None:
    """Calls without a record are counted; those with one are shown."""
    osd("fn", "call", "count", "--zone", obj)
    osd("fn", "call", "count", "--zone", obj, "--method", "fails", code=10)
    osd("fn", "call", "count", "--zone", obj, "--record")
    log = osd("fn", "log", "count").stdout
    assert "2 calls without a record, 1 with one, 1 failed" in log
    assert "reason 201" in log and "  ValueError: no such thing" in log and "COMPLETED" in log
    assert "COMPLETED" not in osd("fn", "log", "count", "--tail", "0").stdout
    found = json.loads(osd("fn", "log", "count", "-o", "json").stdout)
    assert (found["schema"], found["plain"], found["recorded"], found["failed"]) == (
        *("iosd.function_log/1", 2),
        *(1, 1),
    )
    assert found["failure"]["method"] == "fails"
    (job,) = found["jobs"]
    assert (job["state"], job["function"]) == ("COMPLETED", found["id"])
    osd("fn", "deactivate", "count")
    assert "is not active" in osd("fn", "log", "count").stdout
    osd("fn", "log", "nobody", code=66)


def test_ls_and_show(osd: Run, count: Path) -> None:
    (listed,) = json.loads(osd("fn", "ls", "-o", "json").stdout)["functions"]
    shown = json.loads(osd("fn", "show", "count", "-o", "json").stdout)
    assert listed == shown
    assert (shown["name"], shown["state"], shown["access"]) == ("count", "active", "read")
    assert shown["methods"] == ["main", "shout", "fails"]
    for name in (shown["id"], shown["id"].partition("/")[2], shown["sha256"][:8]):
        assert json.loads(osd("fn", "show", name, "-o", "json").stdout) == shown
    assert osd("fn", "code", "count").stdout == COUNT
    table = osd("fn", "ls").stdout
    assert "count" in table and "active" in table


def test_another_version(osd: Run, count: Path, obj: ObjectRef) -> None:
    """The old one is gone; the name has the new code."""
    count.write_text("def main(args):\n    return 7\n")
    made = osd("fn", "put", count, "--version", "2").stdout.strip()
    assert osd("fn", "call", "count").stdout == "7\n"
    (listed,) = json.loads(osd("fn", "ls", "-o", "json").stdout)["functions"]
    assert (listed["id"], listed["version"]) == (made, "2")


def test_deactivate_and_activate(osd: Run, count: Path, obj: ObjectRef) -> None:
    osd("fn", "deactivate", "count")
    osd("fn", "call", "count", "--zone", obj, code=66)
    assert "stored" in osd("fn", "show", "count").stdout
    osd("fn", "activate", "count")
    assert json.loads(osd("fn", "call", "count", "--zone", obj).stdout)["words"] == 4


def test_what_cannot_be_stored(osd: Run, count: Path, tmp_path: Path) -> None:
    """Nothing stays of it, and what was there is untouched."""
    osd("fn", "put", count, "--name", "two words", code=2)
    osd("fn", "put", count, "--engine", "cobol", code=1)
    osd("fn", "put", count, "--partition", "0x10000", code=2)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def main(args)\n    return 1\n")
    assert "expected ':'" in osd("fn", "put", wrong, code=1).stderr
    wrong.write_text("def man(args):\n    return 1\n")
    assert "no function 'main'" in osd("fn", "put", wrong, code=1).stderr
    osd("fn", "put", count, "--method", "mian", code=1)
    assert "it has: default" in osd("fn", "put", count, "--pool", "nix", code=1).stderr
    plain = tmp_path / "no_suffix"  # a function in Python, too
    plain.write_bytes(b"\x7fELF\0")
    assert "does not compile" in osd("fn", "put", plain, code=1).stderr
    module = tmp_path / "x.wasm"
    module.write_bytes(b"(module)")
    assert "is no module of WebAssembly" in osd("fn", "put", module, code=1).stderr
    assert len(json.loads(osd("fn", "ls", "-o", "json").stdout)["functions"]) == 1


def test_a_call_that_is_refused_names_the_reason(osd: Run, count: Path, obj: ObjectRef) -> None:
    call = ("fn", "call", "count", "--zone", obj)
    assert "'nix'; it has: main, shout, fails" in osd(*call, "--method", "nix", code=1).stderr
    assert "no pool 'nix'; it has: default" in osd(*call, "--pool", "nix", code=1).stderr
    assert "osd: --json: Expecting value" in osd(*call, "--json", "x", code=2).stderr
    whole = osd("fn", "call", "count", "--zone", "root", code=10).stderr
    assert "name a partition or a directory" in whole


def test_functions_of_iosd_replace_no_others(osd: Run, count: Path) -> None:
    mine = osd("fn", "show", "count", "-o", "json").stdout
    assert "not stored: count: " in osd("fn", "stock").stderr
    assert osd("fn", "show", "count", "-o", "json").stdout == mine
    assert "count: replaced " in osd("fn", "stock", "count").stderr
    assert osd("fn", "stock", "count").stderr == ""


def test_no_functions_are_an_empty_list(osd: Run) -> None:
    if "0x1" in osd("part", "ls", "-o", "id").stdout.split():
        osd("part", "rm", "0x1", "--contents", "--yes")
    done = osd("fn", "ls", "-o", "json")
    assert json.loads(done.stdout)["functions"] == []
    assert "'osd fn put' or 'osd fn stock'" in done.stderr


def test_a_script_calls_a_function(
    osd: Run, count: Path, obj: ObjectRef, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same in a sandbox and here, with the credentials of the user."""
    script = tmp_path / "script.py"
    script.write_text("import osd\nprint(osd.call('count', ['a']))\n")
    wanted = "{'words': 4, 'args': ['a']}\n"
    assert osd("exec", script, "--zone", obj, "--wait").stdout == wanted
    osd("exec", script, "--zone", obj, "--local")
    assert capfd.readouterr().out == wanted
