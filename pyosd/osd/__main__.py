# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a script at a client as a sandbox would: ``python -m pyosd.osd SCRIPT [ARGS]``.

`import osd` finds this package, __main__ is the script's, tracebacks show the script's lines and no
others, and what lies beside the script is not imported.  Environment: see _client/connect.py;
IOSD_SCRIPT_NAME: what the script is called in tracebacks and sys.argv; IOSD_DEBUGGER: pdb starts
where it raises.

With the one argument --ahead it serves scripts (_client/ahead.py).
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import importlib
import json
import marshal
import os
import sys
import threading
import traceback
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

import pyosd.osd
from pyosd.jobs.modules import is_zipapp, pack_zipapp
from pyosd.osd import _archive

PYC_HEADER = 16  # bytes: magic number, flags, what the source was


def load(file: Path, name: str) -> CodeType:
    """Compile a script, or read the byte-code of a .pyc file.  Raises: SystemExit; SyntaxError."""
    data = pack_zipapp(file) if is_zipapp(file) else file.read_bytes()
    if data.startswith(_archive.MAGIC):
        data, name = _archive.enter(data, name)
    if file.suffix == ".pyc":
        if data[: len(MAGIC_NUMBER)] != MAGIC_NUMBER:
            raise SystemExit(f"{file} is not byte-code of this Python")
        code = marshal.loads(data[PYC_HEADER:])
        assert isinstance(code, CodeType)
        return code
    return _archive.compile_code(data, name)


def given_words() -> list[str]:
    """The arguments of the environment, where they are words: then they are those of sys.argv too."""
    args = json.loads(os.environ.get("IOSD_ARGS") or "null")
    return args if isinstance(args, list) and all(isinstance(each, str) for each in args) else []


def run(file: Path, words: list[str]) -> int:
    """Run it as __main__.  Returns: 0, or 1 where it raised; leaves by SystemExit as it does."""
    name = os.environ.get("IOSD_SCRIPT_NAME", file.name) or "<script>"
    script = ModuleType("__main__")
    script.__dict__.update(__builtins__=builtins, __file__=name)
    sys.modules.update({"__main__": script, "osd": pyosd.osd})
    sys.argv = [name, *(given_words() or words)]
    try:
        exec(load(file, name), script.__dict__)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        if trace is not None and os.environ.get("IOSD_DEBUGGER"):
            end_in_script(trace)
            importlib.import_module("pdb").post_mortem(trace)
        return 1
    return 0


def end_in_script(trace: TracebackType) -> None:
    """Cut off the frames of this library at the end of a traceback: a debugger stops in the last one."""
    own = str(Path(__file__).parent.parent) + os.sep  # of pyosd
    last, each = trace, trace.tb_next
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(own):
            last = each
        each = each.tb_next
    last.tb_next = None


def exit_code(left: SystemExit) -> int:
    """The code with which Python would end, after the text it would print."""
    if isinstance(left.code, int):
        return left.code
    if left.code is not None:
        print(left.code, file=sys.stderr)
    return int(left.code is not None)


def leave(code: int) -> NoReturn:
    """End as Python does, but free no memory: after a fork that would copy every page of the parent."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


def run_ahead() -> int:
    """Serve scripts.  Returns: the exit code, of a child that has run one or of the process itself."""
    from pyosd.osd._client.ahead import next_order

    order = next_order()
    if order is None:
        return 0
    try:
        code = run(Path(order["script"]), [])
    except SystemExit as left:
        code = exit_code(left)
    leave(code)


if __name__ == "__main__":
    if sys.argv[1:] == ["--ahead"]:
        sys.exit(run_ahead())
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m pyosd.osd SCRIPT [ARGS]")
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
