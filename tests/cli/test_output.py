# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables on a pseudo-terminal of 80 and 40 columns, on a pipe, with and without colour."""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from pyosd.cli.output import tables as output
from tests import warm
from tests.pieces import OSD, pieces

PROGRAM = """
from pyosd.cli.output.tables import Column, print_records, colour_wanted
import sys
rows = [
    {"schema": "t/1", "id": "0x10000/0x10001", "n": 5, "name": "short", "state": "RUNNING"},
    {"schema": "t/1", "id": "0x10000/0x10002", "n": 12345, "name": "a name that is long " * 4,
     "state": "FAILED"},
]
columns = (
    Column("ID", lambda row: row["id"]),
    Column("N", lambda row: str(row["n"]), right=True),
    Column("STATE", lambda row: row["state"], colour=lambda row: "red"),
    Column("NAME", lambda row: row["name"], shrink=True),
)
print_records(rows, columns, output=sys.argv[1], schema="ts/1", name="rows",
              colour=colour_wanted(sys.argv[2], sys.stdout))
"""

GOLDEN_80 = """\
ID                   N  STATE    NAME
0x10000/0x10001      5  RUNNING  short
0x10000/0x10002  12345  FAILED   a name that is long a name that is long a name…
"""
GOLDEN_40 = """\
ID                   N  STATE    NAME
0x10000/0x10001      5  RUNNING  short
0x10000/0x10002  12345  FAILED   a name…
"""


def on_terminal_of(program: str, columns: int, *args: str, **environment: str) -> str:
    """Run a program with a pseudo-terminal of that width as stdout; return what it printed."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    keep = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    process = warm.Python(
        [sys.executable, "-c", program, *args],
        stdout=follower,
        env=keep | {"TERM": "xterm"} | environment,
    )
    os.close(follower)
    pieces = []
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(leader)
    assert process.wait() == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")


def on_terminal(columns: int, *args: str, **environment: str) -> str:
    """The same with PROGRAM."""
    return on_terminal_of(PROGRAM, columns, *args, **environment)


@pytest.mark.parametrize(("columns", "golden"), [(80, GOLDEN_80), (40, GOLDEN_40)])
def test_table_fits_the_terminal(columns: int, golden: str) -> None:
    assert on_terminal(columns, "table", "auto", NO_COLOR="1") == golden


def test_colour_only_where_wanted() -> None:
    assert "\x1b[31mFAILED" in on_terminal(80, "table", "auto")
    assert "\x1b[31mFAILED" in on_terminal(80, "table", "always", NO_COLOR="1")
    assert "\x1b" not in on_terminal(80, "table", "never")
    assert "\x1b" not in on_terminal(80, "table", "auto", NO_COLOR="1")
    assert "\x1b" not in on_terminal(80, "table", "auto", TERM="dumb")


def on_pipe(*args: str) -> str:
    return warm.run(
        [sys.executable, "-c", PROGRAM, *args], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_nothing_is_cut_on_a_pipe() -> None:
    assert ("a name that is long " * 4).rstrip() in on_pipe("table", "auto")


def test_json_and_ids() -> None:
    whole = json.loads(on_pipe("json", "auto"))
    assert whole["schema"] == "ts/1"
    assert [json.loads(line) for line in on_pipe("jsonl", "auto").splitlines()] == whole["rows"]
    assert on_pipe("id", "auto").split() == ["0x10000/0x10001", "0x10000/0x10002"]


@pytest.mark.parametrize("form", output.FORMATS)
def test_a_reader_may_go_after_the_first_line(form: str) -> None:
    assert len(pieces(PROGRAM, form, "auto")) == 1


@pytest.mark.parametrize(
    "words",
    [
        "reasons 101 102",
        "doctor",
        "config show {file} --origin",
        "config check {file}",
        "pool simulate {trace}",
        "pool simulate {trace} --why",
        "pool simulate {trace} -o csv",
    ],
)
def test_lines_come_in_one_piece(words: str, tmp_path: Path) -> None:
    file, trace = tmp_path / "iosd.toml", tmp_path / "trace.csv"
    file.write_text("[pools.one]\nmax = 1\n[pools.two]\nmax = 1\n")
    trace.write_text("time,jobs\n0,10\n10,300\n20,0\n60,0\n")
    (found,) = pieces(OSD, *words.format(file=file, trace=trace).split(), codes=(0, 1))
    assert found.count(b"\n") > 1


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (99303321, "94.7 MiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_format_bytes(count: int, text: str) -> None:
    assert output.format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000034, "3 us"), (0.25, "250.0 ms"), (1.5, "1.50 s"), (61, "1:01"), (3661, "1:01:01")],
)
def test_format_seconds(seconds: float, text: str) -> None:
    assert output.format_seconds(seconds) == text


PROSE = """
from pyosd.cli.output.tables import print_prose
print_prose([
    "It waits for a sandbox of pool 'default', 3 ahead of it; the pool has as many slots as may work.",
    "  sha256          " + "0123456789abcdef" * 4 + " and some words behind it",
    "",
    "short",
])
"""


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_prose_fits_the_terminal(columns: int) -> None:
    whole = warm.run([sys.executable, "-c", PROSE], capture_output=True, text=True).stdout
    assert len(whole.splitlines()) == 4, "on a pipe a line stays a line"
    shown = on_terminal_of(PROSE, columns)
    lines = shown.splitlines()
    assert shown.split() == whole.split(), "no word is cut"
    assert all(len(line) <= columns or " " not in line.strip() for line in lines)
    assert lines[0].startswith("It waits") and lines[1].startswith("  ")
    assert "" in lines and lines[-1] == "short"


def test_a_reason_fits_the_terminal() -> None:
    program = "from pyosd.cli import main; main(['reasons', '401'])"
    lines = on_terminal_of(program, 50).splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 50 for line in lines)
