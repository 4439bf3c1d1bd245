# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of a hostile script: on a terminal it is escaped, on a pipe and with --raw it is
unchanged."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import pty
import subprocess
import unittest.mock
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Settings, explain
from pyosd.cli.output.log_lines import log_to_stderr
from pyosd.cli.output.tables import json_line, print_lines
from pyosd.cli.output.terminal import Escaping, escaped, harmless
from tests import warm
from tests.cli.conftest import Run
from tests.cli.screen import written_to
from tests.cli.test_jobs import command
from tests.serving import Serving

HOSTILE = b"\x1b]0;owned\x07\x9b2J\xc2\x9b3J\r\x08up\ttab\xe2\x80\xaedlrow\n"
SHOWN = "^[]0;owned^G\\x9b2J\\x9b3J^M^Hup\ttab\\u202edlrow\n"
SCRIPT = f"""
import osd, sys
osd.progress(0.5, "half")
for stream in (sys.stdout, sys.stderr):
    stream.buffer.write({HOSTILE!r})
    stream.flush()
osd.result({HOSTILE!r})
"""

Look = Callable[..., bytes]


@pytest.fixture
def look(serving: Serving, tmp_path: Path) -> Look:
    """Output of a verb on both streams to a terminal."""

    def look(*words: object, code: int = 0) -> bytes:
        leader, follower = pty.openpty()
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(written_to, leader, os.dup(follower))
            done = warm.osd(*words, "--target", serving.url, terminal=follower)
            os.close(follower)
            screen = reading.result()
        assert done.returncode == code, screen
        return screen.replace(b"\r\n", b"\n").replace(b"        ", b"\t")

    return look


@pytest.mark.sandbox
@pytest.mark.tgtd
def test_a_terminal_shows_what_a_script_wrote(
    osd: Run, pid: str, serving: Serving, look: Look, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = ("--zone", pid)
    screen = look("exec", script, *words)
    assert screen.count(SHOWN.encode()) == 2 and b"\x1b]0;" not in screen
    assert HOSTILE in look("exec", script, *words, "--raw")
    job = osd("exec", script, *words, "--no-wait").stdout.strip()
    osd("job", "wait", job)
    data = osd("obj", "write", pid, data=HOSTILE).stdout.strip()
    for verb, address in (("job logs --stream both", job), ("job result", job), ("obj read", data)):
        named = verb.split()
        screen = look(*named, address)
        assert SHOWN.encode() in screen and b"\x1b]" not in screen, verb
        assert HOSTILE in look(*named, "--raw", address), verb
        line = command(*named, address, "--target", serving.url)
        assert subprocess.run(line, capture_output=True, check=True).stdout == HOSTILE, verb
    for verb in (
        f"job why {job}",
        f"job report {job}",
        f"job logs {job} {job}",
        "ps",
        "ps -o json",
    ):
        assert b"\x1b]" not in look(*verb.split()), verb


@pytest.mark.tgtd
def test_a_script_cannot_ask_for_it(osd: Run, pid: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("#OSD --raw\npass\n")
    said = osd("exec", script, "--zone", pid, code=2).stderr
    assert "line 1 of the script: --raw is for the command line alone" in said


def test_characters_that_come_in_pieces() -> None:
    text = "naïve — 𝄞 \u200d 日本\u3000\n".encode() + HOSTILE
    for size in (1, 2, 3, 1000):
        stream = io.BytesIO()
        sink = Escaping(stream)
        sink.writelines(text[at : at + size] for at in range(0, len(text), size))
        assert stream.getvalue().decode() == "naïve — 𝄞 \u200d 日本\u3000\n" + SHOWN


def test_nothing_is_left_that_a_terminal_obeys() -> None:
    every = "".join(map(chr, range(0x110000)))
    left = {each for each in escaped(every) if ord(each) < 32 or 127 <= ord(each) < 160}
    assert left == {"\n", "\t"}
    line = json_line({"a": every[:0xD800]})
    assert not {each for each in line if ord(each) < 32 or 127 <= ord(each) < 160}


def test_log_lines_have_no_words_of_others_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As `osd mount` logs errors of its target."""
    hostile = HOSTILE.decode(errors="surrogateescape") + "osd: forged"
    root = logging.Logger("root")
    with unittest.mock.patch.object(logging, "root", root):
        log_to_stderr()
        try:
            raise ValueError(hostile)
        except ValueError as error:
            root.warning("READ: %s", error)
            root.exception("our fault")
    first, _, rest = capsys.readouterr().err.partition("\n")
    assert first == "osd: READ: " + harmless(hostile) and "^Josd: forged" in first
    assert "\x1b" not in rest and "ValueError: ^[]0;owned" in rest


def test_an_error_about_a_file_is_one_line(tmp_path: Path) -> None:
    hostile, script = "no\nosd: forged", tmp_path / "script.py"
    script.write_text("pass")
    for words in (("exec", hostile), ("exec", script, "--with", hostile, "--dry-run")):
        done = warm.osd(*words)
        assert done.returncode == Exit.NO_INPUT
        assert done.stderr == "osd: no^Josd: forged: No such file or directory\n"
    shown = explain(FileNotFoundError(errno.ENOENT, "absent", hostile.encode()))
    assert shown == (Exit.NO_INPUT, "no^Josd: forged: absent")


NAMES = (b"a\xffb", b"new\nline", b"esc\x1b]0;x\x07", b"[bold]")


@pytest.fixture
def names(osd: Run, pid: str, tmp_path: Path) -> str:
    """Path of a directory whose files have these names."""
    folder = tmp_path / "names"
    folder.mkdir()
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
    osd("cp", "-r", folder, f"osd:/{pid}")
    return f"/{pid}/names"


@pytest.mark.tgtd
def test_names_for_programs(osd: Run, names: str, pid: str, tmp_path: Path) -> None:
    """On a pipe and in JSON a name is what it is, whatever its bytes are."""
    full = sorted(f"{names}/".encode() + name for name in NAMES)
    for words, end in (
        (("find", names, "--type", "f"), b"\n"),
        (("find", names, "--type", "f", "-0"), b"\0"),
        (("find", names, "--type", "f", "-o", "id"), b"\n"),
        (("ls", names, "-o", "id"), b"\n"),
    ):
        assert osd(*words).stdout_bytes == b"".join(each + end for each in full), words
    for verb, path in (("ls", names), ("stat", f"{names}/*")):
        rows = json.loads(osd(verb, "-o", "json", path).stdout)["paths"]
        assert sorted(os.fsencode(row["id"]) for row in rows) == full
    osd("get", pid, tmp_path / "got")
    got = tmp_path / "got" / "names"
    assert sorted(path.read_bytes() for path in got.iterdir()) == sorted(NAMES)
    assert sorted(os.fsencode(path.name) for path in got.iterdir()) == sorted(NAMES)


@pytest.mark.tgtd
def test_names_on_a_terminal(names: str, look: Look, tmp_path: Path) -> None:
    """Each name is one line that the terminal only shows."""
    for number, verb in enumerate(
        (
            ("ls", names),
            ("ls", "-o", "id", names),
            ("find", names),
            ("find", "-o", "id", names),
            ("sync", "-n", f"osd:{names}", tmp_path / "sync"),
            ("cp", "-r", "--names", f"osd:{names}", tmp_path / "cp"),
            ("get", names.split("/")[1], tmp_path / "get"),
        )
    ):
        screen = look(*verb).decode()
        for shown in ("a\\xffb", "new^Jline", "esc^[]0;x^G", "[bold]"):
            assert f"{shown}\n" in screen, (number, verb, screen)
    look("mkdir", f"{names}/x[")
    look("cp", "-", f"osd:{names}/x[/b]")  # no markup of rich's in the bar


def test_questions_about_names_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    monkeypatch.setattr(click, "confirm", lambda question, **_: asked.append(question))
    monkeypatch.setattr(Settings, "can_ask", True)
    Settings().confirm("Remove /web/\x1b]0;x\x07?")
    Settings().confirm_all("Remove /web/\x1b]0;x\x07?", yes=False)
    assert asked == ["Remove /web/^[]0;x^G?"] * 2


def test_printed_lines_obey_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(["a\x1b[31mb\nc", "plain"])
    print_lines(["\x1b[31mred\x1b[0m"], colour=True)
    assert capsys.readouterr().out == "a^[[31mb^Jc\nplain\n\x1b[31mred\x1b[0m\n"
