# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration of a target that serves, read again; and what it would do."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosd_host.config.differences import compare, lines_of
from iosd_host.config.schema import Setting
from tests.admin.conftest import Run
from tests.machine import unavailable
from tests.serving import SERVE, Serving, arguments, missing, sandboxes_missing
from tests.waiting import until

FILE = """
[target]
memory_budget = "4GiB"
[pools.default]
max = 2
[pools.old]
max = 1
"""


def settings(**values: object) -> dict[str, Setting]:
    return {key.replace("__", "."): Setting(value, "file") for key, value in values.items()}


def test_a_file_is_said_in_either_way(osd: Run, tmp_path: Path) -> None:
    path = tmp_path / "iosd.toml"
    path.write_text(FILE)
    for verb, line in (("show", "pools.old.max = 1"), ("check", "pool old: 1 slot, 256MiB a job")):
        shown = osd("config", verb, path).stdout
        assert line in shown.splitlines()
        assert osd("config", verb, "--config", path).stdout == shown
        assert "say FILE once" in osd("config", verb, path, "--config", path, code=2).stderr


def test_what_is_different() -> None:
    was = settings(
        pools__a__max=2,
        pools__b__max=1,
        target__workers=2,
        manager__scale__auto=True,
        target__ssd="/x",
    )
    now = settings(
        pools__a__max=3, pools__c__max=1, target__workers=4, manager__scale__auto=False
    ) | {"pools.a.limits.mem": Setting("1GiB", "file")}
    found = compare(was, now).fields()
    assert found == {
        "added": ["c"],
        "removed": ["b"],
        "changed": [
            {"key": "pools.a.max", "was": 2, "is": 3},
            {"key": "manager.scale.auto", "was": True, "is": False},
            {"key": "pools.a.limits.mem", "was": None, "is": "1GiB"},
        ],
        "restart": [
            {"key": "target.workers", "was": 2, "is": 4},
            {"key": "target.ssd", "was": "/x", "is": None},
        ],
    }
    assert [*lines_of(found)] == [
        "pool c: added",
        "pool b: removed; it ends with its last job",
        "pools.a.max: 2 -> 3",
        "manager.scale.auto: true -> false",
        'pools.a.limits.mem: not set -> "1GiB"',
        "target.workers: 2 -> 4, once the target is started again",
        'target.ssd: "/x" -> not set, once the target is started again',
    ]
    assert compare(now, now).fields() == {"added": [], "removed": [], "changed": [], "restart": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "iosd.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def served(run_folder: Path, file: Path) -> Iterator[Serving]:
    """A target with that configuration, and a flag."""
    why = missing() or sandboxes_missing()
    if why:
        unavailable("tgtd", why)
    with Serving(*arguments(["--config", str(file), "--pool", "default:queue=7"])) as found:
        yield found


def wait_for(words: str, served: Serving) -> None:
    """Until it has logged them."""
    until(lambda: words in served.text(), lambda: served.text()[-3000:])


ALIKE = "a reload of {url} would change nothing\n"


def test_a_file_is_compared_with_its_target_among_several(
    osd: Run, served: Serving, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unrelated = tmp_path / "unrelated.toml"
    unrelated.write_text("[pools.default]\nmax = 2\n")
    with Serving(*arguments()) as other:
        assert osd("config", "check", file).stdout.endswith(ALIKE.format(url=served.url))
        assert "say which, --target URL" in osd("config", "check", unrelated).stdout
        monkeypatch.setenv("IOSD_TARGET", other.url)
        assert f"a reload of {other.url} would" in osd("config", "check", unrelated).stdout
        assert osd("config", "check", file).stdout.endswith(ALIKE.format(url=served.url))


def test_a_reload(osd: Run, served: Serving, file: Path) -> None:
    assert osd("config", "check", file).stdout.endswith(ALIKE.format(url=served.url))
    shown = osd("config", "show", "--origin").stdout
    assert "# --pool default:queue=7" in next(
        row for row in shown.splitlines() if "default.queue" in row
    )
    osd("pool", "ls", "--target", served.url)

    # An error is reported and changes nothing.
    for words, told in (
        ("[pools.default]\nmaxx = 3", "did you mean 'max'"),
        ("[pools.default]\npackages = 'nowhere'", "pool 'default' would not serve: no package set"),
        ("[pools.default]\nmax = 60", "the budget is 4096 MiB"),
        ("= 1", "Invalid statement"),
    ):
        file.write_text("[target]\nmemory_budget = '4GiB'\n" + words)
        done = osd("config", "reload", code=78)
        assert told in done.stderr and done.stderr.endswith("; nothing has changed\n")
        assert not done.stdout
        wait_for(told, served)
        assert osd("config", "show", "--origin").stdout == shown
    os.kill(served.process.pid, signal.SIGHUP)
    wait_for("SIGHUP: the configuration is as it was", served)
    osd("config", "check", file, code=78)

    file.write_text(
        FILE.replace("max = 2", "max = 3").replace("[pools.old]", "[pools.new]")
        + "[manager.workers]\nmax = 3\n[manager]\nhttp = '127.0.0.1:0'\n"
    )
    wanted = [
        "pool new: added",
        "pool old: removed; it ends with its last job",
        "pools.default.max: 2 -> 3",
        "pools.default.warm_spare: 3 -> 4",
        "manager.workers.max: 8 -> 3",
        'manager.http: not set -> "127.0.0.1:0", once the target is started again',
    ]
    checked = osd("config", "check", file).stdout.splitlines()
    start = checked.index(f"a reload of {served.url} would change this:") + 1
    assert sorted(checked[start:]) == sorted(f"  {line}" for line in wanted)
    found = json.loads(osd("config", "reload", "--why", "more users", "-o", "json").stdout)
    assert found["schema"] == "iosd.reload/1" and sorted(lines_of(found)) == sorted(wanted)
    wait_for("configuration read again, 6 differences. more users", served)
    shown = osd("config", "show", "-o", "json").stdout
    now = {row["key"]: row["value"] for row in json.loads(shown)["settings"]}
    assert (now["pools.default.max"], now["pools.default.queue"], now["manager.workers.max"]) == (
        3,
        7,
        3,
    )
    # Settings that need a restart are still different.
    assert osd("config", "reload").stdout == f"{wanted[-1]}\n"


@pytest.mark.parametrize("kept", [False, True], ids=["plain", "nohup"])
def test_a_terminal_that_hangs_up_ends_it(run_folder: Path, tmp_path: Path, kept: bool) -> None:
    """SIGHUP means something else to who was started at a terminal that is gone, but not by nohup."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    data = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    data.chmod(0o755)
    log = data / "log"
    words = [
        "--no-sandboxes",
        "--no-manager",
        "--portal",
        "127.0.0.1:0",
        "--data",
        str(data / "store"),
    ]
    program = f"{sys.executable} -c '{SERVE}' {shlex.join(words)} >{log} 2>&1"
    pid, terminal = pty.fork()
    if pid == 0:
        hangup = f"--{'ignore' if kept else 'default'}-signal=HUP"
        os.execv("/usr/bin/env", ["env", hangup, "sh", "-c", f"exec {program}"])

    def logged(text: str) -> None:
        until(lambda: log.exists() and text in log.read_text(), log.read_text)

    logged("osd target ping")
    os.kill(pid, signal.SIGHUP)  # the terminal is there: read the configuration again
    logged("configuration read again")
    os.close(terminal)
    if kept:
        until(lambda: log.read_text().count("configuration read again") == 2, log.read_text)
        os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    shutil.rmtree(data)
