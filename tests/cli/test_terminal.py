# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of a hostile script: on a terminal it is escaped, on a pipe and with --raw it is
unchanged."""

from __future__ import annotations

import io
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd.cli.output.tables import json_line
from pyosd.cli.output.terminal import Escaping, escaped
from tests.cli.conftest import Run
from tests.cli.screen import written_to
from tests.cli.test_jobs import command
from tests.serving import Serving

DEADLINE_S = 60
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

    def look(*words: object) -> bytes:
        leader, follower = pty.openpty()
        line = command(*map(str, words), "--target", serving.url)
        process = subprocess.Popen(line, stdout=follower, stderr=follower)
        screen = written_to(leader, follower)
        assert process.wait(timeout=DEADLINE_S) == 0, screen
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
