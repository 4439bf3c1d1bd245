# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes that need no target, or a failure that a healthy one does not give."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyosd import errors
from pyosd.cli import main
from pyosd.cli.frame import verb
from pyosd.cli.frame.codes import MEANING, Exit
from pyosd.cli.frame.hints import hints
from pyosd.cli.frame.verb import explain
from pyosd.cli.jobs.job_view import exit_code
from pyosd.profiles import ProfileError
from pyosd.types import Sense, ref
from pyosd.wire.job_status import JobState, JobStatus


@pytest.fixture(autouse=True)
def no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("IOSD_TARGET", raising=False)
    monkeypatch.delenv("IOSD_PROFILE", raising=False)


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        code, text = run("part", "ls", "--target", f"iscsi://{place}/iqn.x/1")
    assert code == Exit.UNREACHABLE
    assert "Connection refused\n  is the target served" in text


def test_no_target_named() -> None:
    code, text = run("part", "ls")
    assert code == Exit.CONFIG
    assert "IOSD_TARGET" in text


def test_no_such_profile() -> None:
    assert run("part", "ls", "--profile", "x")[0] == Exit.CONFIG


def test_target_that_is_no_url() -> None:
    assert run("part", "ls", "--target", "nonsense")[0] == Exit.USAGE


@pytest.mark.parametrize(
    "words",
    [
        ("exec", "ABSENT", "--zone", "0x10000"),
        ("put", "ABSENT", "0x10000"),
        ("obj", "write", "0x10000/0x10000", "ABSENT"),
        ("fn", "put", "ABSENT"),
        ("fn", "call", "name", "--input", "ABSENT"),
        ("cluster", "put", "ABSENT", "0x10000"),
        ("cred", "show", "ABSENT"),
        ("key", "import", "ABSENT"),
        ("config", "check", "ABSENT"),
        ("secmgr", "serve", "--key", "ABSENT"),
    ],
)
def test_absent_file(words: tuple[str, ...], tmp_path: Path) -> None:
    absent = str(tmp_path / "Absent")
    code, text = run(*(absent if each == "ABSENT" else each for each in words))
    assert (code, text) == (Exit.NO_INPUT, f"osd: {absent}: No such file or directory\n")


def test_unknown_verb() -> None:
    assert run("part", "nonsense")[0] == Exit.USAGE


def test_our_own_mistake_leaves_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(verb.Settings, "connect", broken)
    code, text = run("part", "ls")
    assert code == Exit.INTERNAL
    report = Path(text.rstrip().rpartition(" ")[2])
    assert "on purpose" in report.read_text()
    report.unlink()


def sense(kind: type[errors.OSDError], asc: int = 0, ascq: int = 0) -> errors.OSDError:
    return kind(5, asc, ascq, "text")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.JobCancelled(None, 1, ""), Exit.JOB_CANCELLED),
        (errors.JobTimeout(None, 1, ""), Exit.JOB_TIMEOUT),
        (errors.JobOutOfMemory(None, 1, ""), Exit.JOB_OUT_OF_MEMORY),
        (errors.LimitExceeded(None, 1, ""), Exit.JOB_LIMIT),
        (errors.SandboxLost(None, 1, ""), Exit.SANDBOX_LOST),
        (errors.JobExpired(None, 1, ""), Exit.JOB_UNKNOWN),
        (errors.ScriptError(None, 1, ""), Exit.JOB_FAILED),
        (sense(errors.NotFound), Exit.NO_INPUT),
        (sense(errors.PermissionDenied), Exit.NOT_PERMITTED),
        (sense(errors.TargetBusy), Exit.BUSY),
        (sense(errors.Conflict, 0x80, 0x11), Exit.WRONG_STATE),
        (sense(errors.Conflict, 0x80, 0x14), Exit.WRONG_STATE),
        (sense(errors.Conflict), Exit.FAILED),
        (errors.SessionLost("text"), Exit.UNREACHABLE),
        (errors.LoginRejected("text"), Exit.UNREACHABLE),
        (ProfileError("text"), Exit.CONFIG),
        (FileNotFoundError(2, "absent", "file"), Exit.NO_INPUT),
        (PermissionError(13, "denied", "file"), Exit.NOT_PERMITTED),
    ],
)
def test_code_of_an_exception(error: Exception, code: Exit) -> None:
    assert explain(error)[0] is code


@pytest.mark.parametrize("state", [state for state in JobState if state.terminal])
def test_code_of_a_state(state: JobState) -> None:
    assert exit_code(JobStatus(ref(1, 1), state)) in MEANING


def test_code_of_the_script() -> None:
    killed = JobStatus(ref(1, 1), JobState.FAILED, signal=9)
    assert exit_code(killed, "script") == 137
    assert exit_code(JobStatus(ref(1, 1), JobState.FAILED, exit_code=3), "script") == 3
    assert exit_code(JobStatus(ref(1, 1), JobState.CANCELLED), "script") == Exit.JOB_CANCELLED


def test_every_code_has_a_meaning() -> None:
    assert set(MEANING) == set(Exit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[target]\ntgtd = 'stock'\nportal = '0.0.0.0'",
            "portal 0.0.0.0 is not a loopback address",
        ),
        ("[target]\nchap_file = '/nowhere/at/all'", "/nowhere/at/all: No such file or directory"),
        ("[target]\nportal = 'here'", "portal must be an IP address"),
    ],
)
def test_a_configuration_that_would_not_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("IOSD_RUN", str(tmp_path))
    file = tmp_path / "iosd.toml"
    file.write_text(text)
    code, words = run("config", "check", str(file))
    assert code == Exit.CONFIG
    assert said in words


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    code, words = run("target", "check", "--data", str(tmp_path / "nope"))
    assert code == Exit.NO_INPUT
    assert words.endswith("--data says where the store is\n")
    code, backup = run("target", "backup", "make", str(tmp_path), "--data", str(tmp_path / "nope"))
    assert code == Exit.NO_INPUT and backup == words
    (tmp_path / "file").touch()
    code, words = run("target", "check", "--data", str(tmp_path / "file"))
    assert code == Exit.NO_INPUT and "Not a directory" in words


@pytest.mark.parametrize(
    ("ascq", "words"),
    [
        (0x12, "another key"),
        (0x18, "osd fn engines"),
        (0x22, "function_signers"),
        (0x2E, "osd obj rm"),
    ],
)
def test_a_refusal_has_a_remedy(ascq: int, words: str) -> None:
    assert any(words in line for line in hints(errors.OSDError(5, 0x80, ascq, "refused")))


def test_a_session_that_a_daemon_without_targets_ends_has_a_remedy() -> None:
    """tgtd takes the connection and closes it."""
    lost = errors.SessionLost("the target closed the connection")
    assert any("systemctl status tgt iosd-attach" in line for line in hints(lost))
    assert not [*hints(errors.CommandTimeout("no answer"))]


def test_an_expired_capability_has_a_remedy() -> None:
    sense = Sense(5, 0x24, 0, field_pointer=84)
    expired = errors.PermissionDenied(5, 0x24, 0, "expired", sense=sense)
    assert any("clocks" in line for line in hints(expired))
