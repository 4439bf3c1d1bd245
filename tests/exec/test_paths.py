# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts use paths: osd.open(), osd.glob(), osd.lookup(), zones that are directories, arrays over files.
What a script does in a sandbox, it also does at a client.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd.errors import ScriptError
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import ObjectRef
from tests import warm
from tests.exec.conftest import WAIT_S
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parents[2]
FILES = ("logs/a.gz", "logs/b.txt", "logs/old/c.gz", "logs/old/d/e.gz", "other/f.gz", "g.gz")
Where = Callable[..., Any]


@pytest.fixture
def tree(target: pyosd.Target, zone: ObjectRef) -> dict[str, ObjectRef]:
    """Files whose data is their path."""
    fs, found = target.fs.below(zone), dict[str, ObjectRef]()
    for name in FILES:
        if "/" in name:
            fs.mkdir(name.rpartition("/")[0], parents=True, exist_ok=True)
        found[name] = fs.write_bytes(name, f"{name}\n".encode())
    return found


@pytest.fixture(params=["sandbox", "client"])
def where(
    request: pytest.FixtureRequest, target: pyosd.Target, serving: Serving, tmp_path: Path
) -> Where:
    """Run a script in a sandbox or here; what it left as its result."""

    def in_sandbox(script: str, zone: ObjectRef) -> Any:
        return target.exec(textwrap.dedent(script), zone=zone).result(WAIT_S)

    def here(script: str, zone: ObjectRef) -> Any:
        path, result = tmp_path / "script.py", tmp_path / "result"
        path.write_text(textwrap.dedent(script))
        environment = os.environ | {
            "IOSD_TARGET": serving.url,
            "IOSD_ZONE": str(zone),
            "IOSD_RESULT": str(result),
        }
        command = [sys.executable, "-P", "-m", "pyosd.osd", str(path)]
        done = warm.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(result.read_bytes())

    return in_sandbox if request.param == "sandbox" else here


READS = """
import osd
found = {}
for path in osd.glob("**/*.gz"):
    with osd.open(path) as file:
        found[path] = file.read()
osd.result(found)
"""


@pytest.mark.usefixtures("tree")
def test_files_of_a_partition(where: Where, zone: ObjectRef) -> None:
    gz = [name for name in FILES if name.endswith(".gz")]
    assert where(READS, zone) == {name: f"{name}\n" for name in gz}


def test_files_below_a_directory(
    where: Where, target: pyosd.Target, zone: ObjectRef, tree: dict[str, ObjectRef]
) -> None:
    """The zone of a directory is all below it, and nothing else."""
    logs = target.fs.below(zone).resolve("logs")
    found = where(READS, logs)
    names = ("a.gz", "old/c.gz", "old/d/e.gz")
    assert found == {name: f"logs/{name}\n" for name in names}
    outside, inside = tree["other/f.gz"], tree["logs/old/d/e.gz"]
    refused = where(
        f"""
        import osd
        def tries(function, *args):
            try:
                return str(function(*args))
            except osd.OSDError as error:
                return type(error).__name__
        osd.result([
            tries(osd.open, "../g.gz"),
            tries(osd.open, "/{zone}/g.gz"),
            tries(osd.lookup, "/{zone}/logs/a.gz"),
            tries(list, osd.glob("/{zone}/*")),
            tries(osd.userobject({outside.partition_id}, {outside.object_id}).length),
            tries(osd.open, "none"),
            tries(osd.open, "old"),
            tries(osd.open, "a.gz/x"),
            tries(osd.open, "a.gz", "w"),
            len(osd.open("old/d/e.gz", "rb").read()),
            osd.lookup("old/d/e.gz").object_id == {inside.object_id},
            type(osd.lookup("old")).__name__,
        ])
        """,
        logs,
    )
    assert refused == [
        "Invalid",
        "PermissionDenied",
        "PermissionDenied",
        "PermissionDenied",
        "PermissionDenied",
        "NotFound",
        "Invalid",
        "Invalid",
        "Invalid",
        len("logs/old/d/e.gz\n"),
        True,
        "collection",
    ]


def test_a_name_that_leaves_the_zone_takes_the_right_with_it(
    target: pyosd.Target, zone: ObjectRef, tree: dict[str, ObjectRef]
) -> None:
    fs = target.fs.below(zone)
    moved = tree["logs/old/c.gz"]
    script = f"""
        import osd
        osd.result(osd.userobject({moved.partition_id}, {moved.object_id}).length())
    """
    logs = fs.resolve("logs")
    assert target.exec(textwrap.dedent(script), zone=logs).result(WAIT_S) == len("logs/old/c.gz\n")
    fs.rename("logs/old/c.gz", "other/c.gz")
    with pytest.raises(ScriptError, match="PermissionDenied"):
        target.exec(textwrap.dedent(script), zone=logs).result(WAIT_S)


@pytest.mark.usefixtures("tree")
def test_lines_and_patterns(where: Where, zone: ObjectRef) -> None:
    found = where(
        """
        import osd
        with osd.open("logs/b.txt") as file:
            lines = [line for line in file]
        with osd.open("logs/b.txt", "r+b") as file:
            file.seek(0, 2)
            file.write(b"more\\n")
        osd.result([
            lines,
            osd.open("logs/b.txt").read(),
            list(osd.glob("*")),
            list(osd.glob("logs/[ab].*")),
            list(osd.glob("*/old/*.gz")),
            list(osd.glob("none")),
            list(osd.glob("logs/a.gz/*")),
            [path.object.length() for path in osd.glob("g.gz")],
        ])
        """,
        zone,
    )
    assert found == [
        ["logs/b.txt\n"],
        "logs/b.txt\nmore\n",
        ["g.gz", "logs", "other"],
        ["logs/a.gz", "logs/b.txt"],
        ["logs/old/c.gz"],
        [],
        [],
        [5],
    ]


def test_jobs_and_nameless_objects_are_in_no_glob(
    where: Where, target: pyosd.Target, zone: ObjectRef
) -> None:
    target.create_and_write(zone.partition_id, b"no name")
    target.exec("pass", zone=zone, surrogate=zone).wait(WAIT_S)
    assert where("import osd\nosd.result(list(osd.glob('**')))", zone) == []


def test_many_names(where: Where, target: pyosd.Target, zone: ObjectRef) -> None:
    """More than one answer holds: a MiB of names."""
    names = [f"{n:05}-{'x' * 200}" for n in range(5000)]
    for name in names:
        target.create_name(zone, name)
    found = where("import osd\nosd.result([len(n) for n in osd.glob('0[0-3]*')])", zone)
    assert found == [206] * 4000


def test_an_array_over_files(
    target: pyosd.Target, zone: ObjectRef, tree: dict[str, ObjectRef], submit: Callable[..., Job]
) -> None:
    def array_of(script: str, **options: Any) -> JobArray:
        return target.exec_array(script, zone=zone, **options)

    objects = [tree[name] for name in FILES]
    script = "import osd\nosd.result([osd.args, [each.data.read().decode() for each in osd.over]])"
    array = array_of(script, over=objects, batch=4, args=["word"])
    assert [job.result(WAIT_S) for job in array] == [
        [["word"], [f"{name}\n" for name in part]] for part in (FILES[:4], FILES[4:])
    ]
    single = array_of(script, over=objects[:1])
    assert [job.result(WAIT_S) for job in single] == [[None, ["logs/a.gz\n"]]]
    assert submit("import osd\nosd.result(osd.over)").result(WAIT_S) == []
    refused: tuple[dict[str, Any], ...] = (
        {"over": []},
        {"over": objects, "batch": 0},
        {"over": objects, "array": range(2)},
    )
    for wrong in refused:
        with pytest.raises(ValueError, match=r"over|batch"):
            submit(script, **wrong)
    with pytest.raises(ValueError, match="bytes"):
        submit(script, over=objects, args=b"raw")


HOSTILE = """
import osd, struct
from osd._current import current
head = struct.Struct(">BBxxHHIHxxQQ")

def tried(body, pid={pid}, oid=0):
    try:
        return current().call(45, pid, oid, body=body)[0]
    except osd.OSDError as error:
        return type(error).__name__

def params(verb=1, flags=0, path=b"logs", other=b"", most=0, prefix=b"", obj=0, expected=0, cut=0):
    lengths = len(path) + cut, len(other), most, len(prefix)
    return head.pack(verb, flags, *lengths, obj, expected) + path + other + prefix

bad = [b"", bytes(31), bytes(32), bytes(1 << 20), params(cut=1), params(cut=-1)]
bad += [params(verb=verb) for verb in (0, 3, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 255)]
bad += [params(flags=flags) for flags in (1, 2, 4, 8, 255)]
paths = (b"/", b"logs//b", b"..", b"logs/..", b".", b"a" * 256, b"a" * 5000, b"\\0")
bad += [params(path=path) for path in paths]
bad += [params(obj=1), params(expected=1), params(verb=1, most=1), params(verb=2, other=b"x" * 300)]
bad += [params(verb=2, prefix=b"x" * 300)]
osd.result({{
    "bad": [tried(each) for each in bad],
    "good": [tried(params()) == {logs}, tried(params(verb=2)), tried(params(verb=2, path=b""))],
    "from a file": tried(params(), oid={file}),
    "from nothing": tried(params(), oid=0x7fffffff),
    "elsewhere": tried(params(), pid=0x7fffffff),
    "from the root": tried(params(), pid=0),
    "from a file's name": tried(params(path=b"g.gz/x")),
}})
"""


def test_hostile_calls(target: pyosd.Target, zone: ObjectRef, tree: dict[str, ObjectRef]) -> None:
    logs = target.fs.below(zone).resolve("logs").object_id
    script = HOSTILE.format(pid=zone.partition_id, logs=logs, file=tree["g.gz"].object_id)
    found = target.exec(script, zone=zone).result(WAIT_S)
    assert set(found.pop("bad")) == {"Invalid"}
    assert found == {
        "good": [True, 3, 3],
        "from a file": "Invalid",
        "from nothing": "NotFound",
        "elsewhere": "PermissionDenied",
        "from the root": "Invalid",
        "from a file's name": "Invalid",
    }
