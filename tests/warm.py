# SPDX-License-Identifier: GPL-2.0-or-later
"""Python programs without the quarter second that the start of a Python and imports take: a run starts some
hundreds, most of them `osd`.

One process for each worker imports what programs want, when one first wants it, and copies itself for each
program.  The copy is a child of the test run, not of that process (CLONE_PARENT): it is waited for as if it
had been started here, and ends when the test run does.  It has the arguments, user, folder, environment and
streams that it is given, no other descriptors, and the limits that the worker had before its first program.
It obeys SIGINT and SIGHUP, also where the test run ignores them.
Not here: tests of the start itself and of signals during it, which run the program; calls by shell scripts
(tests/cli/warm.py).
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tests.processes import Watch, companion, dismiss
from tests.waiting import DEADLINE_S

OURS = ("pyosd", "iosd_host", "iosd_secmgr", "bench", "tests")
OSD = "from pyosd.cli import main; main(prog_name='osd')"
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]  # number of the system call
CLONE_PARENT = 0x8000
LONGEST = 1 << 17  # bytes of a request
HIGHEST = 1 << 20  # of descriptors
LOST_OUTPUT = 120  # exit code of an interpreter that cannot write the rest of its output
GIVEN = [*inspect.signature(subprocess.Popen._execute_child).parameters]  # type: ignore[attr-defined]
STREAMS = (("stdin", "r", -1), ("stdout", "w", -1), ("stderr", "w", 1))
SENT = ("cwd", "env", "uid", "gid", "gids", "start_new_session", "process_group")
one_at_a_time = threading.Lock()


# ---- in the test run ----


class _Python(subprocess.Popen[Any]):
    """A Python program.  Args: those of Popen().

    args: "osd" and its words; or as for a start of Python, with at most the option -P, then -c or -m.
    """

    def _execute_child(self, *given: Any) -> None:
        how = dict(zip(GIVEN, (self, *given), strict=True))
        assert not how["pass_fds"] and how["close_fds"] and how["preexec_fn"] is None
        request = {name: how[name] for name in SENT}
        request["args"] = [os.fsdecode(each) for each in how["args"]]
        request["cwd"] = os.fsdecode(how["cwd"] or Path.cwd())
        request["env"] = dict(os.environ if how["env"] is None else how["env"])
        pipes = [how[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if given < 0 else given for number, given in enumerate(pipes)]
        with one_at_a_time:
            link, _ = helper()
            socket.send_fds(link, [json.dumps(request).encode()], streams)
            self.pid = int(link.recv(LONGEST))
        self._child_created = True
        pipes += [how[name] for name in ("p2cwrite", "c2pread", "errread")]
        self._close_pipe_fds(*(pipes[at] for at in (0, 3, 4, 1, 5, 2)))  # type: ignore[attr-defined]


def _run(
    args: Sequence[str | os.PathLike[str]],
    *,
    input: Any = None,  # noqa: A002 -- as subprocess.run()
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **how: Any,
) -> subprocess.CompletedProcess[Any]:
    """subprocess.run() of such a program."""
    if input is not None:
        how["stdin"] = subprocess.PIPE
    if capture_output:
        how["stdout"] = how["stderr"] = subprocess.PIPE
    with _Python(args, **how) as process:
        try:
            said = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, *said)
    if check:
        done.check_returncode()
    return done


if TYPE_CHECKING:
    Python, run = subprocess.Popen, subprocess.run
else:
    Python, run = _Python, _run


def osd(
    *words: object,
    environment: Mapping[str, str] | None = None,
    folder: str | Path = "/",
    text: str = "",
    uid: int | None = None,
    terminal: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end.

    Args: environment: all of it; None: the test's.  text: standard input.  uid: also the group; None: ours.
        terminal: descriptor that both outputs go to, which the caller reads; the result has none of it.
    Raises: TimeoutExpired: it does not end; it is killed.
    """
    how: dict[str, Any] = {"stdout": terminal, "stderr": terminal} if terminal is not None else {}
    if uid is not None:
        how |= {"user": uid, "group": uid, "extra_groups": []}
    return run(
        ["osd", *map(str, words)],
        input=text,
        capture_output=terminal is None,
        timeout=DEADLINE_S,
        env=environment,
        cwd=folder,
        text=True,
        **how,
    )


@functools.cache
def helper() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that copies itself, and the connection to it; it ends with ours."""
    ours, process = companion("tests.warm", socket.SOCK_SEQPACKET)
    atexit.register(dismiss, ours, process)
    return ours, process


# ---- in the process that copies itself ----


def program_of(args: list[str]) -> tuple[bool, str, str, list[str]]:
    """Whether the first place of sys.path is the program's, "-c" or "-m", what to run, and its words."""
    if Path(args[0]).name == "osd":
        return False, "-c", OSD, args[1:]
    given = args[1:]
    safe = given[0] == "-P"
    kind, what, *words = given[safe:]
    assert kind in ("-c", "-m"), args
    return not safe, kind, what, words


def prepare(kind: str, what: str, words: list[str]) -> None:
    """Import what this program will, so that no copy has to."""
    names = {what}
    if kind == "-c":
        imports = [each for each in ast.parse(what).body if isinstance(each, ast.ImportFrom)]
        names = {each.module or "" for each in imports}
    before = len(sys.modules)
    for name in names:
        if name.partition(".")[0] in OURS:
            found = importlib.import_module(name)
            if kind == "-m" and hasattr(found, "__path__"):
                importlib.import_module(f"{name}.__main__")
    if "pyosd.cli import main" in what:
        import_verb(words)
    if len(sys.modules) > before:
        gc.collect()
        gc.freeze()  # else a collection in a copy would copy the pages of all these objects


def import_verb(words: list[str]) -> None:
    """Import a command's module."""
    from pyosd.cli import main

    command: click.Command | None = main
    context = click.Context(main)
    for word in words:
        if isinstance(command, click.Group):
            command = command.get_command(context, word)


def clone() -> int:
    """os.fork(), but the new process is a child of our parent."""
    python, library = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True)  # these hold the GIL
    python.PyOS_BeforeFork()
    pid = int(
        library.syscall(*map(ctypes.c_long, (CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)))
    )
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def become(how: dict[str, Any], streams: list[int]) -> None:
    """Be as a process that was started so."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, HIGHEST)
    for number, (name, mode, buffering) in enumerate(STREAMS):
        errors = getattr(sys, name).errors
        text: Any = open(number, mode, buffering, "utf-8", errors)  # noqa: SIM115, PTH123 -- to the end
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
    # Also where the tests ignore them: behind nohup, and in the background of a script.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if how["start_new_session"]:
        os.setsid()
    if how["process_group"] != -1:
        os.setpgid(0, how["process_group"])
    os.environ.clear()
    os.environ.update(how["env"])
    os.chdir(how["cwd"])
    if how["gids"] is not None:
        os.setgroups(how["gids"])
    if how["gid"] is not None:
        os.setresgid(*[how["gid"]] * 3)
    if how["uid"] is not None:
        os.setresuid(*[how["uid"]] * 3)


def perform(own_place: bool, kind: str, what: str, words: list[str]) -> NoReturn:
    """Run the program, and end as an interpreter does."""
    sys.argv = ["-c", *words]
    place = [("" if kind == "-c" else os.getcwd())] if own_place else []  # noqa: PTH109 -- its type
    sys.path[:1] = [*place, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    code: object = 1
    try:
        if kind == "-m":
            package = hasattr(sys.modules.get(what), "__path__")
            sys.modules.pop(f"{what}.__main__" if package else what, None)
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), vars(main))
        code = 0
    except SystemExit as end:
        code = end.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    leave(code if isinstance(code, int) else int(code is not None))


def leave(code: int) -> NoReturn:
    """End without the clearing of all objects: it costs as much as the rest of a stop."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except ValueError:  # closed
            pass
        except OSError:
            code = LOST_OUTPUT
    os._exit(code)


def serve(link: socket.socket) -> None:
    """Answer each request with a process id; return when the test run has ended, perhaps by a signal.
    Its programs then end, too."""
    programs = Watch()
    while True:
        request, streams, _, _ = socket.recv_fds(link, LONGEST, 3)
        if not request:
            programs.kill(signal.SIGTERM)
            return
        how = json.loads(request)
        program = program_of(how["args"])
        with contextlib.suppress(Exception):  # the program will say it
            prepare(*program[1:])
        pid = clone()
        if pid == 0:
            link.detach()
            become(how, streams)
            perform(*program)
        programs.add({pid})
        for each in streams:
            os.close(each)
        link.send(str(pid).encode())


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
