# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd exec` and `osd job` against a target, and every exit code that a job gives."""

from __future__ import annotations

import json
import pty
import py_compile
import signal
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from pyosd.types import ObjectRef
from tests import warm
from tests.cli.conftest import Run
from tests.cli.screen import written_to
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

DEADLINE_S = 60
SLEEP = "import time, osd\nosd.progress(0.5, 'half way')\nprint('started', flush=True)\ntime.sleep(50)\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def submit(osd: Run, pid: str, script: Path, text: str, *flags: str) -> str:
    """Submit and return the job's id, the only thing on stdout."""
    script.write_text(text)
    return osd("exec", script, "--zone", pid, "--no-wait", *flags).stdout.strip()


def wait_until_started(job: str, url: str) -> None:
    """Follow the output until the script's first line is there."""
    process = warm.Python(
        command("job", "logs", "-f", job, "--target", url), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "started\n"
        process.terminate()


def command(*words: str) -> list[str | Path]:
    return [Path(sys.executable).parent / "osd", *words]


def test_a_result_of_none_is_null(osd: Run, obj: ObjectRef, script: Path) -> None:
    for code, result in (("import osd\nosd.result(None)\n", "null\n"), ("pass\n", "")):
        script.write_text(code)
        job = osd("exec", script, "--zone", obj, "--no-wait").stdout.strip()
        osd("job", "wait", job)
        found = osd("job", "result", job)
        assert found.stdout == result
        assert ("left no result" in found.stderr) == (not result)


def test_inputs_and_outputs(osd: Run, obj: ObjectRef, script: Path) -> None:
    text = (
        "import osd\n"
        "obj = osd.userobject(*osd.zone.id)\n"
        "first = obj.data.read(3)\n"
        "obj.data.write(first)\n"
    ).replace("osd.zone.id", f"({obj.partition_id}, {obj.object_id})")
    job = submit(osd, str(obj), script, text)
    osd("job", "wait", job)
    line = osd("job", "inputs", job, "--no-header").stdout.split()
    assert line[:2] == [str(obj), "data"]
    (read,) = json.loads(osd("job", "inputs", job, "-o", "json").stdout)["objects"]
    assert (read["how"], read["version"]) == (["data"], line[2])
    (wrote,) = json.loads(osd("job", "outputs", job, "-o", "json").stdout)["objects"]
    assert (wrote["id"], wrote["how"], wrote["before"]) == (str(obj), ["wrote"], line[2])
    assert osd("job", "outputs", job, "-o", "id").stdout.split() == [str(obj)]
    held = submit(osd, str(obj), script, text, "--hold")
    refused = osd("job", "inputs", held, code=18)
    assert "has not ended" in refused.stderr


def test_output_result_and_arguments(osd: Run, obj: ObjectRef, script: Path) -> None:
    script.write_text(
        "import osd\n"
        "data = osd.userobject(*(int(each, 0) for each in osd.args[:2])).data.read()\n"
        "print(data.decode().upper(), end='')\n"
        "osd.result({'words': len(data.split())})\n"
    )
    ids = (hex(obj.partition_id), hex(obj.object_id))
    done = osd("exec", script, "--zone", obj, "--wait", "--", *ids)
    assert done.stdout == "THE QUICK BROWN FOX\n"
    assert "COMPLETED" in done.stderr
    job = done.stderr.split()[0]
    assert json.loads(osd("job", "result", job).stdout) == {"words": 4}
    assert osd("job", "logs", job).stdout == done.stdout
    assert osd("job", "logs", job, "--tail", "0").stdout == ""
    assert "COMPLETED" in osd("job", "why", job).stdout
    record = json.loads(osd("job", "status", job, "-o", "json").stdout)
    assert (record["schema"], record["state"], record["name"]) == (
        *("iosd.job/1", "COMPLETED", "script.py"),
    )
    assert record["zone"] == str(obj)
    osd("job", "rm", job)
    for verb in ("status", "logs", "result", "wait", "why", "cancel", "kill", "rm"):
        osd("job", verb, job, code=16)


def test_follow_prints_the_same(osd: Run, pid: str, script: Path) -> None:
    script.write_text("for n in range(100): print('line', n)\n")
    done = osd("exec", script, "--zone", pid, "--follow", "-q")
    assert done.stdout.splitlines() == [f"line {n}" for n in range(100)]
    assert done.stderr == ""


def test_begin(osd: Run, pid: str, script: Path) -> None:
    script.write_text("print('ran')")
    job = osd("exec", script, "--zone", pid, "--no-wait", "--begin", "now+1h30m").stdout.strip()
    record = json.loads(osd("job", "status", job, "-o", "json").stdout)
    assert (record["state"], record["reason"]["number"]) == ("HELD", 118)
    assert 5000_000 < record["begin_ms"] - record["submitted_ms"] <= 5400_000 + 60_000
    why = osd("job", "why", job).stdout
    assert "It begins at 2" in why and "release it to start it now" in why
    shown = osd("ps", job).stdout.splitlines()[1].split()
    assert shown[:3] == [job, "HELD", "118"]
    osd("job", "release", job)
    osd("job", "wait", job)
    assert osd("job", "logs", job).stdout == "ran\n"
    job = osd("exec", script, "--zone", pid, "--no-wait", "--begin", "now+1s").stdout.strip()
    osd("job", "wait", job)
    osd("exec", script, "--zone", pid, "--begin", "soon", code=2)
    osd("exec", script, "--zone", pid, "--begin", "now+1h", "--hold", code=2)
    osd("exec", script, "--dry-run", "--begin", "now+1h")


@pytest.mark.parametrize("flags", [("--wait",), ("--follow",), ("--wait", "-q")])
def test_both_streams_and_then_the_end(
    osd: Run, pid: str, script: Path, flags: tuple[str, ...]
) -> None:
    script.write_text("import sys\nprint('out'); print('err', file=sys.stderr)\n1 / 0\n")
    done = osd("exec", script, "--zone", pid, *flags, code=10)
    assert done.stdout == "out\n"
    said = done.stderr.splitlines()
    at = said.index("err")
    assert said[at + 1].startswith("Traceback") and "ZeroDivisionError: division by zero" in said
    if "-q" in flags:
        assert said[-1] == "ZeroDivisionError: division by zero"
    else:
        assert "FAILED (reason 201" in said[-1]


@pytest.mark.parametrize(
    ("text", "flags", "code"),
    [
        ("pass", (), 0),
        ("raise ValueError('on purpose')", (), 10),
        ("import sys; sys.exit(7)", (), 10),
        ("import sys; sys.exit(7)", ("--exit-code", "script"), 7),
        ("pass", ("--exit-code", "script"), 0),
        ("def (", ("--no-check",), 10),
        ("while True: pass", ("--limit-wall", "300ms", "--limit-cpu", "50s"), 12),
        ("x = bytearray(1 << 30)", ("--limit-mem", "64MiB"), 13),
        ("while True: print('x' * 1000)", ("--limit-output", "64KiB"), 14),
    ],
)
def test_exit_code_of_a_job(
    osd: Run, pid: str, script: Path, text: str, flags: tuple[str, ...], code: int
) -> None:
    script.write_text(text)
    osd("exec", script, "--zone", pid, "--wait", "-q", *flags, code=code)
    job = submit(osd, pid, script, text, *(flags if flags[:1] != ("--exit-code",) else ()))
    osd("job", "wait", job, *(flags if flags[:1] == ("--exit-code",) else ()), code=code)


def test_failure_is_explained(osd: Run, pid: str, script: Path) -> None:
    job = submit(osd, pid, script, "raise ValueError('on purpose')")
    osd("job", "wait", job, code=10)
    words = osd("job", "why", job).stdout
    assert "reason 201" in words
    assert "ValueError: on purpose" in words
    assert "on purpose" in osd("job", "logs", "--stderr", job).stdout
    osd("job", "result", job, code=10)


def test_running_job(osd: Run, pid: str, script: Path, serving: Serving) -> None:
    job = submit(osd, pid, script, SLEEP)
    wait_until_started(job, serving.url)
    assert job in osd("job", "ls", "--state", "running", "-o", "id").stdout.split()
    assert job in osd("ps", "-o", "id").stdout.split()
    record = json.loads(osd("ps", job, "-o", "jsonl").stdout)
    assert (record["state"], record["progress"], record["message"]) == ("RUNNING", 0.5, "half way")
    assert "running" in osd("job", "why", job).stdout
    osd("job", "rm", job, code=18)
    osd("job", "result", job, code=18)
    osd("job", "cancel", job, code=18)
    assert job in osd("job", "wait", job, "--timeout", "50ms", code=124).stderr
    assert "CANCELLED" in osd("job", "kill", job).stderr
    osd("job", "wait", job, code=11)
    osd("job", "rm", job)


def test_wait_runs_out(osd: Run, pid: str, script: Path) -> None:
    script.write_text(SLEEP)
    done = osd("exec", script, "--zone", pid, "--wait=100ms", code=124)
    job = done.stderr.split("osd job wait ")[1].strip()
    osd("job", "kill", job)


def test_held_job(osd: Run, pid: str, script: Path) -> None:
    job = submit(osd, pid, script, "print('ran')", "--hold")
    assert "held" in osd("job", "why", job).stdout
    osd("job", "release", job)
    osd("job", "wait", job)
    assert osd("job", "logs", job).stdout == "ran\n"
    other = submit(osd, pid, script, "print('ran')", "--hold")
    osd("job", "cancel", other)
    osd("job", "wait", other, code=11)


def test_same_key_is_the_same_job(osd: Run, pid: str, script: Path) -> None:
    first = submit(osd, pid, script, "print(1)", "--key", f"key of {pid}")
    assert submit(osd, pid, script, "print(1)", "--key", f"key of {pid}") == first
    script.write_text("print(2)")
    osd("exec", script, "--zone", pid, "--no-wait", "--key", f"key of {pid}", code=1)
    osd("job", "wait", first)


def test_options_in_the_script(osd: Run, pid: str, script: Path) -> None:
    text = "#OSD --name inside --limit-wall 300ms --limit-cpu 50s\nwhile True: pass\n"
    job = submit(osd, pid, script, text, "--name", "outside")
    osd("job", "wait", job, code=12)
    assert json.loads(osd("job", "status", job, "-o", "json").stdout)["name"] == "outside"


def test_json_output(osd: Run, pid: str, script: Path) -> None:
    script.write_text("print('not on stdout')")
    record = json.loads(osd("exec", script, "--zone", pid, "--wait", "-o", "json").stdout)
    assert record["state"] == "COMPLETED"
    assert osd("exec", script, "--zone", pid, "--wait", "-o", "id").stdout.startswith(pid)
    dry = json.loads(osd("exec", script, "--zone", pid, "--dry-run", "--", "a").stdout)
    assert (dry["schema"], dry["zone"], dry["args"]) == ("iosd.request/1", pid, ["a"])
    assert (dry["compress"], dry["sent_bytes"]) == (None, dry["script_bytes"])


def test_long_scripts_are_sent_packed(osd: Run, pid: str, script: Path) -> None:
    script.write_text("# a line of many\n" * 1000 + "print('ran')\n")
    dry = json.loads(osd("exec", script, "--zone", pid, "--dry-run").stdout)
    assert dry["compress"] == "zlib" and dry["sent_bytes"] < dry["script_bytes"] // 10
    assert dry["sent_sha256"] != dry["script_sha256"]
    record = json.loads(osd("exec", script, "--zone", pid, "--wait", "-o", "json").stdout)
    assert record["script_sha256"] == dry["sent_sha256"]
    plain = json.loads(osd("exec", script, "--zone", pid, "--no-compress", "--dry-run").stdout)
    assert plain["compress"] is None and plain["sent_sha256"] == dry["script_sha256"]


def test_bytecode_is_refused_with_words(osd: Run, pid: str, tmp_path: Path) -> None:
    source, compiled = tmp_path / "job.py", tmp_path / "job.pyc"
    source.write_text("print(1)")
    py_compile.compile(str(source), str(compiled), doraise=True)
    refused = osd("exec", compiled, "--zone", pid, "--no-wait", code=1)
    assert "byte-code is not allowed" in refused.stderr


def test_same_script_here(
    osd: Run, obj: ObjectRef, script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script.write_text("import osd\nprint(osd.zone.data.read(), osd.args)\n")
    there = osd("exec", script, "--zone", obj, "--wait", "--", "a").stdout
    osd("exec", script, "--zone", obj, "--local", "--", "a")
    assert capfd.readouterr().out == there
    script.write_text("import sys; sys.exit(7)")
    osd("exec", script, "--local", code=10)
    osd("exec", script, "--local", "--exit-code", "script", code=7)


def test_progress_and_zone_of_a_script_here(
    osd: Run, obj: ObjectRef, script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script.write_text(
        "import osd\nosd.progress(0.5, 'half')\nosd.partition(0x10000).create_many(2)"
    )
    osd("exec", script, "--zone", obj, "--local", code=10)
    said = capfd.readouterr().err
    assert "progress: 50% half" in said and "PermissionDenied" in said
    osd("exec", script, "--zone", obj, "--local", "-q", code=10)
    assert "progress:" not in capfd.readouterr().err


def test_script_from_stdin(osd: Run, pid: str) -> None:
    assert osd("exec", "-", "--zone", pid, "--wait", data=b"print('hello')").stdout == "hello\n"
    osd("exec", "-", "--zone", pid, "--wait", data=b"", code=2)


def test_absent_things(osd: Run, pid: str, script: Path) -> None:
    osd("exec", script, "--zone", pid, "--wait", code=66)
    script.write_text("pass")
    osd("exec", script, "--zone", f"{pid}/0x77777777", "--wait", code=66)
    osd("job", "status", f"{pid}/0x77777777", code=16)
    osd("job", "status", pid, code=2)


def test_interrupt_leaves_the_job(osd: Run, pid: str, script: Path, serving: Serving) -> None:
    script.write_text(SLEEP)
    words = ("exec", str(script), "--zone", pid, "--follow", "--target", serving.url)
    process = warm.Python(
        command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130, talk
    job = next(word for word in talk.split() if word.startswith(pid))
    assert job in osd("job", "ls", "--state", "RUNNING", "-o", "id").stdout.split()
    osd("job", "kill", job)


def test_what_it_waits_for(osd: Run, pid: str, script: Path) -> None:
    job = submit(osd, pid, script, "pass", "--hold")
    said = osd("job", "wait", job, "--timeout", "10ms", code=124).stderr
    assert said.startswith(f"{job} HELD: held on request\n")
    osd("job", "cancel", job)


def test_bar_for_a_person(osd: Run, pid: str, script: Path, serving: Serving) -> None:
    """On a terminal: a bar on stderr, no bar on stdout, the last line with state and duration."""
    script.write_text("import osd\nfor n in range(5): osd.progress(n / 5)\nprint('output')\n")
    leader, follower = pty.openpty()
    words = ("exec", str(script), "--zone", pid, "--wait", "--target", serving.url)
    process = warm.Python(command(*words), stdout=subprocess.PIPE, stderr=follower, text=True)
    talk = written_to(leader, follower)
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert out == "output\n"
    assert b"COMPLETED in " in talk
    assert b"\x1b[" in talk


def test_what_it_printed_without_end_of_line(
    osd: Run, pid: str, script: Path, serving: Serving
) -> None:
    """On a terminal what we say about the job begins a line of its own."""
    script.write_text("print('half a line', end='')\n")
    leader, follower = pty.openpty()
    words = ("exec", str(script), "--zone", pid, "--target", serving.url)
    process = warm.Python(command(*words), stdout=follower, stderr=follower)
    screen = written_to(leader, follower)
    assert process.wait(timeout=DEADLINE_S) == 0
    assert b"half a line\r\n0x" in screen


def test_after_another_job(osd: Run, pid: str, script: Path) -> None:
    first = submit(osd, pid, script, "pass", "--hold")
    second = submit(osd, pid, script, "print('went on')", "--after", f"{first}:any")
    third = submit(osd, pid, script, "pass", "--after", second, "--after", first)
    said = osd("job", "why", third).stdout
    assert f"It waits for {second} to end (it was submitted after that and 1 more)." in said
    record = json.loads(osd("job", "status", third, "--output", "json").stdout)
    assert record["after"] == [f"{second}:ok", f"{first}:ok"]
    assert (record["state"], record["reason"]["number"]) == ("QUEUED", 109)
    osd("job", "cancel", first)
    osd("job", "wait", second)
    assert osd("job", "logs", second).stdout == "went on\n"
    osd("job", "wait", third, code=10)
    assert f"{first} ended CANCELLED" in osd("job", "why", third).stdout


def test_modules_of_ones_own(osd: Run, pid: str, tmp_path: Path, script: Path) -> None:
    """Next to the data and here; an array, too."""
    (tmp_path / "lib" / "words").mkdir(parents=True)
    (tmp_path / "lib" / "words" / "__init__.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "lib" / "fails.py").write_text("def fail():\n    raise KeyError('in fail')\n")
    script.write_text("import words\nprint(words.double(21))\n")
    words = ("exec", script, "--zone", pid, "--with", tmp_path / "lib")
    assert osd(*words, "--wait").stdout == "42\n"
    assert here(osd, *words) == b"42\n"
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text("import words, osd\nprint(words.__file__)\n")
    app = tmp_path / "app.pyz"
    zipapp.create_archive(tmp_path / "app", app)
    words = ("exec", app, "--zone", pid, "--with", tmp_path / "lib" / "words")
    assert osd(*words, "--wait").stdout == "app.pyz/words/__init__.py\n"
    assert here(osd, *words) == b"app.pyz/words/__init__.py\n"
    script.write_text("import fails\nfails.fail()\n")
    words = ("exec", script, "--zone", pid, "--with", tmp_path / "lib" / "fails.py")
    job = osd(*words, "--wait", "-o", "id", code=10).stdout.strip()
    shown = osd("job", "report", job).stdout
    assert 'File "fails.py", line 2, in fail' in shown and "raise KeyError('in fail')" in shown
    again = ("job", "retry", job, "--script", script)
    retried = osd(*again, "--with", tmp_path / "lib" / "fails.py")
    assert "is not the script" not in retried.stderr
    assert "is not the script" in osd(*again).stderr


def here(osd: Run, *words: object) -> bytes:
    """Output of `osd exec --local`; its child writes to the real standard output."""
    return warm.run(
        command(*map(str, words), "--local"), stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S
    ).stdout


def test_a_script_that_does_not_compile_makes_no_job(
    osd: Run, pid: str, script: Path, tmp_path: Path
) -> None:
    script.write_text("x = 1\nprint 1\n")
    said = osd("exec", script, "--zone", pid, code=1).stderr
    assert "nothing was sent" in said and 'File "script.py", line 2' in said
    (tmp_path / "mine.py").write_text("def f(:\n")
    script.write_text("import mine\n")
    said = osd("exec", script, "--with", tmp_path / "mine.py", "--zone", pid, code=1).stderr
    assert 'File "mine.py", line 1' in said
    assert not osd("obj", "ls", pid, "-o", "id").stdout
    script.write_text("print 1\n")
    job = osd("exec", script, "--zone", pid, "--no-check", "--wait", "-o", "id", code=10)
    assert "SyntaxError" in osd("job", "why", job.stdout.strip()).stdout


def test_modules_that_cannot_travel(osd: Run, pid: str, script: Path, tmp_path: Path) -> None:
    script.write_text("pass\n")
    (tmp_path / "large.py").write_bytes(b"#" * (17 << 20))
    said = osd("exec", script, "--with", tmp_path / "large.py", "--zone", pid, code=1).stderr
    assert "17.0 MiB, and the limit is 16.0 MiB; the largest is large.py" in said
    osd("exec", script, "--with", tmp_path / "nowhere", "--zone", pid, code=66)
    script.write_text("#OSD --with /root\npass\n")
    said = osd("exec", script, "--zone", pid, code=2).stderr
    assert "--with is for the command line alone" in said
    script.write_text("pass\n")
    (tmp_path / "no.pyz").write_bytes(b"PK")
    assert "no zip archive" in osd("exec", tmp_path / "no.pyz", "--zone", pid, code=1).stderr


def test_ps_leaves_no_lines_about_partitions_without_jobs(
    osd: Run, pid: str, serving: Serving
) -> None:
    """The collection of a partition's jobs is made with the first one, and is asked for before."""
    osd("ps")

    def logged() -> bool:
        """Of the refusals of a second the target logs the first ones."""
        osd("part", "create", pid, code=1)
        return f"CREATE PARTITION ({pid}/0x0)" in serving.text()

    until(logged, "the refusal in the log, after whatever ps has caused")
    assert f"GET MEMBER ATTRIBUTES ({pid}/" not in serving.text()
