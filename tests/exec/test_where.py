# SPDX-License-Identifier: GPL-2.0-or-later
"""Target.run() and `osd exec --where`: the same outcome from both places, and what is learned from it."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pyosd
from pyosd.cli import main
from pyosd.functions import Functions, FunctionStage
from pyosd.offload.costs import FIRST, Costs
from pyosd.offload.home import HomeProcess, HomeScript, Outcome
from pyosd.offload.where import link_points
from pyosd.osd._client.pure import PureTransport
from pyosd.types import AttributeValue, ObjectRef, PartitionId
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests import warm

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

DEADLINE_S = 60.0
SIZE = (2 << 20) + 5
COUNT = """\
import osd
print("counting")
osd.result({"bytes": sum(len(block) for block in osd.zone.data.blocks()), "args": osd.args})
"""
EXPECTED = {"bytes": SIZE, "args": ["a", {"b": 1}]}
ARGS = ["a", {"b": 1}]
HOG = "while True:\n    pass\n"


@pytest.fixture(autouse=True)
def costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is learned goes into a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/iosd/costs.json"


@pytest.fixture
def session(target: pyosd.Target, costs: Path) -> pyosd.Target:
    """A session that knows no costs yet."""
    target.__dict__.pop("costs", None)
    return target


@pytest.fixture
def data(session: pyosd.Target, pid: int) -> ObjectRef:
    obj = session.create(PartitionId(pid))
    session.write(obj, 0, bytes(SIZE))
    return obj


def believe(session: pyosd.Target, code: str, seconds: float) -> None:
    """Make the client expect that the script takes so long here."""
    known = pyosd.jobs.submission.prepare(code, zone=pyosd.ROOT).code
    for _ in range(50):
        session.costs.ran_home(Costs.name(known), SIZE, SIZE, seconds)


def test_both_places_leave_the_same(session: pyosd.Target, data: ObjectRef) -> None:
    near = session.run(COUNT, zone=data, args=ARGS, timeout=DEADLINE_S)
    here = session.run(COUNT, zone=data, args=ARGS, where="local", timeout=DEADLINE_S)
    assert (near.where, here.where) == ("near", "local")
    assert near.result == here.result == EXPECTED
    assert near.output == here.output == b"counting\n"
    assert near.exit_code == here.exit_code == 0


@pytest.mark.parametrize("script", ["1 / 0", "import sys\nsys.exit(3)", "print('x' * 100_000)"])
def test_both_places_fail_alike(session: pyosd.Target, data: ObjectRef, script: str) -> None:
    near = session.run(script, zone=data, pure=True, where="near", timeout=DEADLINE_S)
    here = session.run(script, zone=data, pure=True, where="local", timeout=DEADLINE_S)
    assert (near.output, near.exit_code) == (here.output, here.exit_code)


def test_a_script_here_ends_as_python_does(session: pyosd.Target, data: ObjectRef) -> None:
    script = """
import atexit, sys, threading
atexit.register(print, "at exit")
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
print("main")
sys.exit("a text")
"""
    found = session.run(script, zone=data, where="local", timeout=DEADLINE_S)
    assert (found.output, found.stderr) == (b"main\nthread\nat exit\n", b"a text\n")
    assert found.exit_code == 1


def test_a_program_with_many_descriptors_runs_scripts(
    session: pyosd.Target, data: ObjectRef
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with contextlib.closing(HomeProcess()) as process:
            found = process.run(HomeScript(b"print(1)", session.url, data), DEADLINE_S)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (found.output, found.exit_code) == (b"1\n", 0)


def test_blocks_belong_to_the_script(session: pyosd.Target, data: ObjectRef) -> None:
    script = """
import osd
found = []
for block in osd.zone.data.blocks():
    block[:1] = b"z"
    found.append(block)
osd.result([bytes(each).count(b"z") for each in found] + [sum(map(len, found))])
"""
    for where in ("near", "local"):
        found = session.run(script, zone=data, pure=True, where=where, timeout=DEADLINE_S)
        assert found.result == [1, 1, 1, SIZE]


def test_a_link_is_as_fast_as_its_fastest_reads(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 8.0, 8.0, 10.0, 10.0, 11.0, 11.0, 19.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert link_points(session, data) == {SIZE // 4: 1.0, SIZE: 2.0}


@pytest.mark.parametrize("where", ["near", "local"])
def test_a_pure_script_changes_nothing_anywhere(
    session: pyosd.Target, data: ObjectRef, where: pyosd.offload.where.Where
) -> None:
    script = "import osd\nosd.zone.data.write(b'x')"
    found = session.run(script, zone=data, pure=True, where=where, timeout=DEADLINE_S)
    assert found.exit_code == 1
    assert b"PermissionDenied" in found.stderr or where == "near"
    assert bytes(session.read(data, 0, 1)) == b"\0"


def test_auto_learns_near_then_goes_where_it_is_sooner(
    session: pyosd.Target, data: ObjectRef, costs: Path
) -> None:
    first = session.run(COUNT, zone=data, args=ARGS, pure=True, timeout=DEADLINE_S)
    assert (first.where, first.result) == ("near", EXPECTED)
    assert "not run near the data before" in first.why
    believe(session, COUNT, 1e-6)
    here = session.run(COUNT, zone=data, args=ARGS, pure=True, timeout=DEADLINE_S)
    assert (here.where, here.result, here.output) == ("local", EXPECTED, b"counting\n")
    assert here.why.startswith("expected ")
    believe(session, COUNT, 3000.0)
    near = session.run(COUNT, zone=data, args=ARGS, pure=True, timeout=DEADLINE_S)
    assert (near.where, near.result) == ("near", EXPECTED)
    assert 0 < near.predicted < 3000
    assert json.loads(costs.read_text())["schema"] == "iosd.costs/1"


def test_a_run_near_the_data_sends_one_command(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output that is empty is not read, and the size of the zone is known from the run before."""
    silent, sent = COUNT.replace('print("counting")', ""), list[object]()
    session.run(silent, zone=data, args=ARGS, where="auto", wait=DEADLINE_S)

    def counted(send: Callable[..., Any]) -> Callable[..., Any]:
        def counts(*given: Any) -> Any:
            sent.append(given)
            return send(*given)

        return counts

    for name in ("submit", "execute"):
        monkeypatch.setattr(session.transport, name, counted(getattr(session.transport, name)))
    monkeypatch.setattr(session.costs, "clock", lambda: session.costs.sized[2])
    monkeypatch.setattr(session.costs, "needs_link", lambda url, sha256: False)
    found = session.run(silent, zone=data, args=ARGS, where="auto", wait=DEADLINE_S)
    assert (found.where, found.result, len(sent)) == ("near", EXPECTED, 1)


def test_the_other_place_is_tried_when_that_costs_little(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one slow run would keep a script from a place for good."""
    monkeypatch.setattr(pyosd.offload.costs, "START", 3000.0)
    sha256 = Costs.name(pyosd.jobs.submission.prepare(COUNT, zone=pyosd.ROOT).code)

    def run() -> str:
        return session.run(
            COUNT, zone=data, args=ARGS, where="auto", wait=DEADLINE_S, timeout=DEADLINE_S
        ).where

    assert run() == "near"
    session.costs.tried_here(sha256, fails=False)  # a near tie would be a reason, too
    session.costs.stayed(sha256, "near", 1e9, 1e9)
    assert run() == "near", "it has never run here"
    believe(session, COUNT, 3000.0)
    assert run() == "near"
    session.costs.stayed(sha256, "near", 39 * 3000.0, 3000.0)
    assert run() == "near"
    session.costs.stayed(sha256, "near", 3000.0, 3000.0)
    assert run() == "local"
    assert session.costs.scripts[sha256].home.at(SIZE) < 1000, "the first time that was better"
    believe(session, COUNT, 1e-6)
    assert run() == "local"
    for _ in range(5):
        session.costs.stayed(sha256, "local", 1.0, 0.1)
    assert session.costs.to_try(sha256) == "near"
    session.costs.save(at_once=True)
    session.__dict__.pop("costs")
    assert run() == "near"


FAILS_HERE = "import os\nif 'IOSD_ZONE' in os.environ:\n    raise SystemExit(3)\n" + COUNT


def test_a_near_tie_is_tried_here_once(session: pyosd.Target, data: ObjectRef) -> None:
    for code, place in ((COUNT, "local"), (FAILS_HERE, "near")):
        sha256 = Costs.name(pyosd.jobs.submission.prepare(code, zone=pyosd.ROOT).code)

        def run(code: str = code) -> Outcome:
            return session.run(code, zone=data, args=ARGS, where="auto", wait=DEADLINE_S)

        assert run().where == "near"
        session.costs.stayed(sha256, "near", 100.0, 11.0)
        assert session.costs.to_try(sha256) == ""
        session.costs.stayed(sha256, "near", 100.0, 9.0)
        assert session.costs.to_try(sha256) == FIRST
        found = run()
        assert (found.where, found.result, found.exit_code) == (place, EXPECTED, 0)
        session.costs.stayed(sha256, "near", 100.0, 9.0)
        assert session.costs.to_try(sha256) != FIRST


def test_a_script_that_fails_here_alone_stays_near(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes there.  One that fails in both places may still go where it is sooner."""
    monkeypatch.setattr(pyosd.offload.costs, "START", 0.0)
    for code, stays in ((FAILS_HERE, True), (COUNT + "raise SystemExit(3)\n", False)):
        sha256 = Costs.name(pyosd.jobs.submission.prepare(code, zone=pyosd.ROOT).code)
        session.costs.ran_near(sha256, SIZE, SIZE, 1e-6)
        session.costs.measured(session.url, sha256, {SIZE: 1e-6})
        for _ in range(3):
            found = session.run(code, zone=data, args=ARGS, where="auto", wait=DEADLINE_S)
            assert (found.where, found.exit_code) == ("near", 0 if stays else 3)
        assert (session.costs.cost(session.url, sha256, SIZE).seconds == 0) is stays


def test_the_link_is_measured_again_when_that_costs_little() -> None:
    now = 0.0
    costs = Costs(Path("/nowhere/costs.json"), lambda: now)
    assert not costs.needs_link("url", "script")
    costs.ran_near("script", SIZE, SIZE, 1.0)
    assert costs.needs_link("url", "script")
    costs.measured("url", "script", {SIZE: 0.5})
    costs.stayed("script", "near", 39.0, 0.0)
    assert not costs.needs_link("url", "script")
    costs.stayed("script", "near", 2.0, 0.0)
    assert costs.needs_link("url", "script")
    costs.measured("url", "script", {SIZE: 0.5})
    assert not costs.needs_link("url", "script")
    now = 3601.0
    assert costs.needs_link("url", "script")
    costs.ran_home("script", SIZE, SIZE, 1.0)
    assert not costs.needs_link("url", "script")


def test_a_function_runs_in_both_places(session: pyosd.Target, data: ObjectRef) -> None:
    def total(add: int) -> int:
        import osd  # type: ignore[import-not-found]

        return add + sum(len(block) for block in osd.zone.data.blocks())

    for where in ("near", "local", "auto"):
        found = session.run(total, zone=data, args=[1], where=where, timeout=DEADLINE_S)
        assert found.result == SIZE + 1


def test_members_run_in_both_places(session: pyosd.Target, data: ObjectRef) -> None:
    script = COUNT.replace('"args": osd.args', '"args": osd.array_index')
    expected = [{"bytes": SIZE, "args": index} for index in range(3, 9)]
    first = session.run_array(script, zone=data, array=range(3, 9), timeout=DEADLINE_S)
    assert [each.result for each in first] == expected
    assert {each.where for each in first} == {"near"}
    believe(session, script, 1e-6)
    again = session.run_array(script, zone=data, array=range(3, 9), timeout=DEADLINE_S)
    assert [each.result for each in again] == expected
    assert "local" in {each.where for each in again}


def test_members_that_fail_here_alone_end_near(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by run(): the client may lack modules that the script imports."""
    monkeypatch.setattr(pyosd.offload.costs, "START", 0.0)
    script = FAILS_HERE.replace('"args": osd.args', '"args": osd.array_index')
    for code, exit_code in ((script, 0), (script + "raise SystemExit(3)\n", 3)):
        sha256 = Costs.name(pyosd.jobs.submission.prepare(code, zone=pyosd.ROOT).code)
        session.costs.ran_near(sha256, SIZE, SIZE, 1e-6)
        session.costs.measured(session.url, sha256, {SIZE: 1e-6})
        found = session.run_array(code, zone=data, array=[3, 5, 8], timeout=DEADLINE_S)
        assert [(each.where, each.exit_code) for each in found] == [("near", exit_code)] * 3
        if not exit_code:
            assert [each.result["args"] for each in found] == [3, 5, 8]


def test_a_run_here_ends_with_its_time(session: pyosd.Target, data: ObjectRef) -> None:
    with pytest.raises(TimeoutError):
        session.run(HOG, zone=data, where="local", timeout=1.0)


def test_scripts_here_share_a_process_and_nothing_else(
    session: pyosd.Target, data: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import builtins, os, sys
import osd
print(sys.stdin.read(), end="")
osd.result([os.getppid(), getattr(builtins, "seen", None), os.environ.get("IOSD_SOME")])
builtins.seen = True
"""

    def run(code: str) -> Outcome:
        return session.run(code, zone=data, where="local", timeout=DEADLINE_S)

    first, failed, second = run(script), run("print('a')\n1 / 0"), run(script)
    assert first.result == second.result == [first.result[0], None, None]
    assert (first.output, failed.output, second.output) == (b"", b"a\n", b"")
    assert b"ZeroDivisionError" in failed.stderr
    assert second.stderr == b""
    killed = run("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)")
    assert (killed.exit_code, killed.where) == (128 + 15, "local")
    monkeypatch.setenv("IOSD_SOME", "new")
    other = run(script).result
    assert other[0] != first.result[0], "the process has another environment"
    assert other[2] == "new"


def test_the_next_script_here_has_a_session_already(session: pyosd.Target, data: ObjectRef) -> None:
    script = """
import osd
from pyosd.osd._client.connect import logged_in
before = len(logged_in)
osd.result([before, osd.zone.data.read(1).hex(), len(logged_in)])
"""
    if spare := session.take_spare():  # of other tests
        spare.close()
    found = [session.run(script, zone=data, where="local", timeout=DEADLINE_S) for _ in range(3)]
    assert [each.result for each in found] == [[0, "00", 0], [1, "00", 0], [1, "00", 0]]


def test_data_that_functions_make(
    session: pyosd.Target, functions: Functions, data: ObjectRef
) -> None:
    """No attribute has their length."""
    script = """
import osd
file = osd.zone.data
osd.result([file.read().decode(), file.seek(0, 2), osd.zone.length(), bytes(file.map()).decode()])
"""
    stored = gzip.compress(b"one\ntwo\n")
    session.write(data, 0, stored)
    session.set_attributes(data, [AttributeValue(*LOGICAL_LENGTH, len(stored).to_bytes(8))])
    functions.attach(data, [FunctionStage(functions.put_stock("gzip").id)])
    assert session.known_length(data) is None
    for where in ("near", "local"):
        found = session.run(script, zone=data, pure=True, where=where, timeout=DEADLINE_S)
        assert found.result == ["one\ntwo\n", 8, 8, "one\ntwo\n"]


def test_data_that_are_appended_while_a_script_reads(
    session: pyosd.Target, data: ObjectRef
) -> None:
    transport, buffer, got = PureTransport(session), bytearray(1 << 20), 0
    ids = data.partition_id, data.object_id
    got += transport.readinto(*ids, got, buffer)
    session.append(data, b"x" * 5000)
    while count := transport.readinto(*ids, got, buffer):
        got += count
    assert got == SIZE + 5000
    assert session.length(data) == got


def test_a_session_of_another_user_runs_nothing_here(
    session: pyosd.Target, data: ObjectRef
) -> None:
    session.inherited = False
    try:
        with pytest.raises(ValueError, match="of its own"):
            session.run(COUNT, zone=data, where="local")
        believe(session, COUNT, 1e-6)
        found = session.run(COUNT, zone=data, args=ARGS, pure=True, timeout=DEADLINE_S)
        assert (found.where, found.result) == ("near", EXPECTED)
    finally:
        session.inherited = True


# ---- the command line


def osd(url: str, *words: object, code: int = 0) -> Result:
    given = [str(word) for word in (*words, "--target", url)]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
    return result


def as_program(url: str, *words: object) -> tuple[bytes, bytes]:
    """Standard output and error; a script's process writes to the real ones."""
    program = [sys.executable, "-c", "from pyosd.cli import main; main(prog_name='osd')"]
    done = warm.run(
        [*program, *map(str, words), "--target", url],
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout, done.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """COUNT, marked as pure by its first line."""
    script = tmp_path / "count.py"
    script.write_text("#OSD --pure\n" + COUNT)
    return script


def test_osd_exec_goes_where_it_is_sooner(
    session: pyosd.Target, data: ObjectRef, file: Path
) -> None:
    words = ("exec", file, "--zone", data, "--pure", "--wait")
    out, err = as_program(session.url, *words)
    assert json.loads(out.splitlines()[1]) == {"bytes": SIZE, "args": []}
    assert out.startswith(b"counting\n")
    assert b"runs here" not in err
    believe(session, file.read_text(), 1e-6)
    session.costs.save()
    here, err = as_program(session.url, *words)
    assert here == out
    assert b"runs here: expected" in err
    job = next(each for each in session.jobs(data.partition_id) if each.name == "count.py")
    why = osd(session.url, "job", "why", job.id).stdout
    assert "had not run near the data before" in why
    near = ("exec", file, "--zone", data, "--wait")
    assert b"runs here" not in as_program(session.url, *near)[1], "its own line is not enough"


def test_options_that_contradict_auto(session: pyosd.Target, file: Path) -> None:
    for more in (["--no-wait"], ["--local"], ["-o", "json"]):
        osd(session.url, "exec", file, "--where", "auto", *more, code=2)
    osd(session.url, "submit", file, "--where", "auto", code=2)


def test_a_client_killed_in_the_middle_leaves_nothing_at_the_target(
    session: pyosd.Target, data: ObjectRef, file: Path
) -> None:
    """What runs here needs nothing of the target but its session."""
    before = [each.id for each in session.jobs(data.partition_id)]
    file.write_text(file.read_text() + "print('counted', flush=True)\nimport time\ntime.sleep(3)\n")
    program = [sys.executable, "-c", "from pyosd.cli import main; main(prog_name='osd')"]
    words = ["exec", str(file), "--zone", str(data), "--where", "local", "--target", session.url]
    with warm.Python([*program, *words], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert [client.stdout.readline() for _ in range(2)] == [b"counting\n", b"counted\n"]
        client.kill()
    assert [each.id for each in session.jobs(data.partition_id)] == before
    found = session.run(COUNT, zone=data, args=ARGS, pure=True, timeout=DEADLINE_S)
    assert found.result == EXPECTED
