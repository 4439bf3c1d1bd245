# SPDX-License-Identifier: GPL-2.0-or-later
"""Log lines: the format of ours, and how lines of child processes are passed on.

One line an event, as text or as a JSON object with time, level, component, message, and the job, pool,
sandbox or target concerned (docs/logs.md).  Environment variables set format and level, also for the C
parts (target/base/log.c): IOSD_LOG_FORMAT, IOSD_LOG_LEVEL.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import logging
import os
import re
import sys
from typing import Any, TextIO

__all__ = ["ENVIRONMENT", "FORMATS", "LEVELS", "configure", "echo", "relay", "say", "take_over"]

FORMATS = ("text", "json")
LEVELS = ("error", "warning", "info", "debug")  # the gravest first
ENVIRONMENT = ("IOSD_LOG_FORMAT", "IOSD_LOG_LEVEL")
READER_GONE = (errno.EPIPE, errno.EIO)  # of a pipe; of a terminal
OURS = re.compile(r"(?P<time>\d{4}-\S+Z) (?P<component>\S+) (?P<level>[a-z]+): (?P<rest>.*)")
ABOUT = re.compile(r"(job|pool|sandbox|target)=(\S+) ")


def configure(form: str | None, level: str | None) -> None:
    """Set what is given, for us and for processes we start from here on."""
    for name, value in zip(ENVIRONMENT, (form, level), strict=True):
        if value is not None:
            os.environ[name] = value


def is_json() -> bool:
    """Whether lines are objects."""
    return os.environ.get("IOSD_LOG_FORMAT") == "json"


def wanted(level: str) -> bool:
    """Whether lines of this level are written."""
    threshold = os.environ.get("IOSD_LOG_LEVEL", "info")
    return LEVELS.index(level) <= LEVELS.index(threshold if threshold in LEVELS else "info")


def now() -> str:
    """The time of day as it stands in every line."""
    text = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def escaped(text: object) -> str:
    """On one line, and nothing in it that a terminal would obey."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


def say(component: str, level: str, message: str, **about: object) -> None:
    """Write a line to stderr.

    Args:
        component: who says it: "iosd-supervisor", "iosd-manager".
        level: one of LEVELS.
        message: what happened; what came from outside may be in it, for it is escaped.
        about: job, pool, sandbox, target, and whatever else is worth a field of its own.
    """
    if not wanted(level):
        return
    if is_json():
        fields = {"time": now(), "level": level, "component": component, **about}
        write(json.dumps({**fields, "message": message}, default=str))
        return
    words = "".join(f"{key}={escaped(value)} " for key, value in about.items())
    write(f"{now()} {component} {level}: {words}{escaped(message)}")


class Handler(logging.Handler):
    """Lines of Python's logging as ours; a traceback is part of its message."""

    def __init__(self, component: str) -> None:
        super().__init__()
        self.component = component
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """One record."""
        level = {"CRITICAL": "error"}.get(record.levelname, record.levelname.lower())
        try:
            say(self.component, level if level in LEVELS else "debug", self.format(record))
        except Exception:
            self.handleError(record)


def take_over(component: str) -> None:
    """All of this process's logging goes there; what is below the level is not even put together."""
    threshold = os.environ.get("IOSD_LOG_LEVEL", "info")
    number = logging.getLevelNamesMapping().get(threshold.upper(), logging.INFO)
    logging.basicConfig(level=number, handlers=[Handler(component)])
    logging.getLogger("asyncio").setLevel(max(number, logging.INFO))


def relay(component: str, line: str) -> None:
    """Pass on a line of a process of that name."""
    if not is_json():
        write(f"{component} | {escaped(line)}")
    elif line.startswith("{") and is_event(line):
        write(line)
    else:
        write(json.dumps(parsed(component, line)))


def is_event(line: str) -> bool:
    """Whether this is a line as we write them."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and {"time", "level", "component", "message"} <= fields.keys()


def parsed(component: str, line: str) -> dict[str, Any]:
    """The fields of a line that was written as text, by us or by others."""
    found = OURS.fullmatch(line)
    if found is None:
        return {"time": now(), "level": "info", "component": component, "message": line}
    fields: dict[str, Any] = {key: found[key] for key in ("time", "level", "component")}
    rest = found["rest"]
    while about := ABOUT.match(rest):
        fields[about[1]] = about[2]
        rest = rest[about.end() :]
    return {**fields, "message": rest}


def write(line: str) -> None:
    """One line, at once."""
    echo(line, err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line to stdout or stderr at once.  A line that cannot be written is dropped.

    A daemon must not fail because the reader of its output has gone: 'osd target serve | tee log'
    loses tee first when Ctrl-C ends both.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        if error.errno in READER_GONE:
            discard(stream)


def discard(stream: TextIO) -> None:
    """Redirect a stream to /dev/null: Python would try again at exit to write what it has buffered."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
