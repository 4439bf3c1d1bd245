# SPDX-License-Identifier: GPL-2.0-or-later
"""A second job in a used sandbox: what it finds of the first, and when there is no second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from objects import MemoryObjects, Thing
from proxy import (
    CLEAN,
    CONTROL_END,
    FINISH_ENDED,
    FINISH_EXCEPTION,
    FINISH_EXIT,
    FINISH_OK,
    Daemon,
    Limits,
    Outcome,
    Sandbox,
)

from pyosd.jobs.modules import Modules

if TYPE_CHECKING:
    pass


def second(sandbox: Sandbox, first: str | bytes, then: str | bytes) -> str:
    """What the second prints; both end well."""
    outcome = sandbox.run_another(first)
    assert outcome.kind in (FINISH_OK, FINISH_EXIT), outcome.traceback
    sandbox.wait_ready()
    sandbox.drain()
    outcome = sandbox.run_another(then)
    assert outcome.kind == FINISH_OK, outcome.traceback
    sandbox.wait_ready()
    return outcome.stdout.decode()


def test_a_job_after_one_that_took_the_signal_is_ended_all_the_same(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    second(sandbox, "import signal; signal.signal(signal.SIGURG, signal.SIG_IGN)", "pass")
    sandbox.start("print('on', flush=True)\nimport time; time.sleep(1000)")
    sandbox.outcome.stdout = b""
    sandbox.read_until(b"on\n")
    sandbox.control(CONTROL_END)
    assert sandbox.finish().kind == FINISH_ENDED
    sandbox.close()


def test_a_job_that_reads_json_leaves_the_sandbox_fit(sandbox: Sandbox) -> None:
    """Of a script, and as arguments; the decoder remembers keys meanwhile."""
    sandbox.run_another("pass", args=b'{"key": 1}', args_encoding=2)
    sandbox.wait_ready()
    sandbox.drain()
    read = "import json; print(json.loads('{\"key\": [1]}'))"
    assert second(sandbox, read, "print('still fit')") == "still fit\n"


def test_modules_that_came_with_a_job_go_with_it(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("SECRET = 'of the first'\n")
    first = Modules(tmp_path).archive(b"import words; print(words.SECRET)")
    (tmp_path / "words.py").write_text("SECRET = 'of the third'\n")
    third = Modules(tmp_path).archive(b"import words; print(words.SECRET)")
    look = (
        "import sys; print(len(sys.meta_path), 'words' in sys.modules)\n"
        "try: import words\n"
        "except ModuleNotFoundError: print('gone')\n"
    )
    assert second(sandbox, first, look).split() == ["3", "False", "gone"]
    assert second(sandbox, third, "print('still fit')") == "still fit\n"
    assert "of the third" in second(sandbox, "pass", third)


OPEN_DESCRIPTORS = (
    "import os\n"
    "def there(fd):\n"
    "    try: os.fstat(fd)\n"
    "    except OSError: return False\n"
    "    return True\n"
    "print([fd for fd in range(256) if there(fd)])"
)
LEFT = {
    "global": ("secret = 'xyzzy'", "print('secret' in globals())", "False"),
    "main module": (
        "import sys; sys.modules['__main__'].secret = 1",
        "import sys; print(hasattr(sys.modules['__main__'], 'secret'))",
        "False",
    ),
    "imported module": (
        "import colorsys; colorsys.secret = 1",
        "import sys; print('colorsys' in sys.modules)",
        "False",
    ),
    "invented module": (
        "import sys, types; sys.modules['mine'] = types.ModuleType('mine')",
        "import sys; print('mine' in sys.modules)",
        "False",
    ),
    "missing module": (
        "import sys; del sys.modules['json']",
        "import json; print(json.dumps(1))",
        "1",
    ),
    "builtin": (
        "import builtins; builtins.len = lambda x: 42; builtins.secret = 1",
        "import builtins; print(len('abc'), hasattr(builtins, 'secret'))",
        "3 False",
    ),
    "removed builtin": ("import builtins; del builtins.sorted", "print(sorted([2, 1]))", "[1, 2]"),
    "function of a module": (
        "import json; json.dumps = lambda x: 'patched'",
        "import json; print(json.dumps([1]))",
        "[1]",
    ),
    "method of a class": (
        "import json\njson.JSONEncoder.encode = lambda self, x: 'patched'\n"
        "json.JSONEncoder.secret = 1",
        "import json; print(json.dumps([1], indent=0).split(), hasattr(json.JSONEncoder, 'secret'))",
        "['[', '1', ']'] False",
    ),
    "package osd": (
        "import osd; osd.userobject.write = None; osd.secret = 1",
        "import osd; print(osd.userobject.write is None if hasattr(osd.userobject, 'write') else False,"
        " hasattr(osd, 'secret'))",
        "False False",
    ),
    "path": (
        "import sys; sys.path[:] = ['/nowhere']",
        "import sys; print('/nowhere' in sys.path)",
        "False",
    ),
    "finder": (
        "import sys\nclass Finder:\n    def find_spec(self, *a): return None\n"
        "sys.meta_path.insert(0, Finder())",
        "import sys; print(any(type(f).__name__ == 'Finder' for f in sys.meta_path))",
        "False",
    ),
    "environment": (
        "import os; os.environ['SECRET'] = 'xyzzy'; os.environ.pop('LANG', None)",
        "import os; print('SECRET' in os.environ)",
        "False",
    ),
    "warning filters": (
        "import warnings; warnings.simplefilter('error')",
        "import warnings; warnings.warn('soft'); print('fine')",
        "fine",
    ),
    "recursion limit": (
        "import sys; sys.setrecursionlimit(77)",
        "import sys; print(sys.getrecursionlimit())",
        "1000",
    ),
    "garbage collector": ("import gc; gc.disable()", "import gc; print(gc.isenabled())", "True"),
    "decimal context": (
        "import decimal; decimal.getcontext().prec = 3",
        "import decimal; print(decimal.getcontext().prec)",
        "28",
    ),
    "context variable": (
        "import contextvars\nvar = contextvars.ContextVar('secret')\nvar.set(1)",
        "import contextvars; print([v.name for v in contextvars.copy_context() if v.name == 'secret'])",
        "[]",
    ),
    "signal handler": (
        "import signal; signal.signal(signal.SIGUSR1, lambda *a: None)",
        "import signal; print(signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL)",
        "True",
    ),
    "trace function": (
        "import sys; sys.settrace(lambda *a: None)",
        "import sys; print(sys.gettrace())",
        "None",
    ),
    "exit function": (
        "import atexit; atexit.register(print, 'at exit')",
        "print('second')",
        "second",
    ),
    "excepthook and streams": (
        "import sys, io; sys.stdout = sys.__stdout__ = io.StringIO(); sys.excepthook = None",
        "import sys; print(sys.excepthook is not None)",
        "True",
    ),
    "closed streams": (
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "print('heard')",
        "heard",
    ),
    "file": (
        "import builtins, os\nfd = os.open('/dev/null', os.O_RDONLY)\nfor i in range(20): os.dup(fd)",
        OPEN_DESCRIPTORS,
        "[0, 1, 2, 4]",
    ),
    "arguments and words": (
        "import sys; sys.argv.append('secret'); sys.secret = 1",
        "import sys; print(len(sys.argv), hasattr(sys, 'secret'))",
        "1 False",
    ),
    "a destructor that prints and calls": (
        "import osd\nclass Late:\n    def __del__(self):\n        print('late')\n"
        "        osd.progress(0.5)\nlate = Late()\nlate.me = late",
        "print('second')",
        "second",
    ),
    "an exit": ("import sys; sys.exit(3)", "print('second')", "second"),
    "exhausted names": (
        "import sys; sys.modules['os'].read = None",
        "import os; print(os.read is None)",
        "False",
    ),
}


@pytest.mark.parametrize(("first", "then", "prints"), LEFT.values(), ids=LEFT)
def test_the_next_job_does_not_find(sandbox: Sandbox, first: str, then: str, prints: str) -> None:
    assert second(sandbox, first, then).split("\n")[0] == prints


def test_a_failed_job_leaves_no_traceback_and_the_next_may_run_out_of_memory(
    sandbox: Sandbox,
) -> None:
    outcome = sandbox.run_another("secret = 'xyzzy'\n1 / 0", name="first.py")
    assert outcome.kind == FINISH_EXCEPTION and "first.py" in outcome.traceback
    sandbox.wait_ready()
    outcome = sandbox.run_another(
        "import sys, linecache; print('first.py' in linecache.cache, hasattr(sys, 'last_type'))"
    )
    assert outcome.stdout == b"False False\n"
    sandbox.wait_ready()
    outcome = sandbox.run_another("x = bytearray(1 << 40)")
    assert outcome.line == "MemoryError"


def test_builtins_are_restored_each_time(sandbox: Sandbox) -> None:
    """They are looked at only where their dictionary says that it has changed."""
    change = "import builtins; print(len('abc'), hasattr(builtins, 'secret'));"
    change += "builtins.len = print; builtins.secret = 1"
    for code in ("pass", change, change, "pass", "pass", change, change):
        outcome = sandbox.run_another(code)
        assert outcome.kind == FINISH_OK, outcome.traceback
        assert outcome.stdout == (b"3 False\n" if code == change else b"")
        sandbox.wait_ready()


def test_random_numbers_differ(sandbox: Sandbox) -> None:
    code = "import random; print(random.getrandbits(64)); random.seed(1)"
    seen = []
    for _ in range(3):
        seen.append(sandbox.run_another(code).stdout)
        sandbox.wait_ready()
    assert len(set(seen)) == 3


def test_maps_and_shares_are_closed(sandbox: Sandbox) -> None:
    store = MemoryObjects(1 << 62)
    store.things[0x10000, 0] = Thing(2)
    store.things[0x10000, 0x10000] = Thing(0x80, bytearray(b"x" * 300_000))
    keep = (
        "import osd, sys\n"
        "sys.kept = osd.userobject(0x10000, 0x10000).data.map()\n"
        "print(type(sys.kept).__name__, len(sys.kept))"
    )
    outcome = sandbox.run_another(keep, store)
    assert outcome.stdout == b"LiveMap 300000\n", outcome.traceback
    sandbox.wait_ready()
    assert sandbox.run_another(OPEN_DESCRIPTORS).stdout == b"[0, 1, 2, 4]\n"
    sandbox.wait_ready()


def test_many_jobs_keep_their_order_and_their_memory(sandbox: Sandbox) -> None:
    for i in range(200):
        outcome = sandbox.run_another(f"import osd\nosd.progress(0.1)\nprint({i})", name=f"{i}.py")
        assert outcome.stdout == f"{i}\n".encode()
        assert len(outcome.progress) == 1
        sandbox.wait_ready()


def test_large_jobs_after_small_ones(sandbox: Sandbox) -> None:
    for in_memfd in (False, True, False, True):
        outcome = sandbox.run_another("print(1)\n" + "#" * 70000 * in_memfd, in_memfd=in_memfd)
        assert outcome.stdout == b"1\n"
        sandbox.wait_ready()


ECHO = (
    "count = 0\ndef main(args):\n    global count\n    count += 1\n    return f'{args} {count}'\n"
)


def echo(sandbox: Sandbox, code: str = ECHO, **job: object) -> Outcome:
    return sandbox.run_another(code, args=b'"a"', args_encoding=2, method="main", **job)


def test_code_that_is_kept_runs_again_without_being_sent(sandbox: Sandbox) -> None:
    """With names of its own each time."""
    for kept in (False, True, True):
        outcome = echo(sandbox, slot=2, kept=kept)
        assert outcome.kept, outcome.traceback
        assert (outcome.result, outcome.result_encoding) == (b'"a 1"', 1)
        assert 3 not in outcome.calls, "the result comes with FINISH"
        sandbox.wait_ready()
    assert not echo(sandbox).kept
    sandbox.wait_ready()


def test_kept_code_shows_its_lines_in_tracebacks(sandbox: Sandbox) -> None:
    code = "def main(args):\n    return 1 / 0  # here\n"
    for kept in (False, True):
        outcome = echo(sandbox, code, slot=1, kept=kept)
        assert outcome.kind == FINISH_EXCEPTION and outcome.kept
        assert "return 1 / 0  # here" in outcome.traceback
        sandbox.wait_ready()


def test_a_job_cannot_change_or_find_code_that_is_kept(sandbox: Sandbox) -> None:
    assert echo(sandbox, slot=1, name="kept.py").kept
    sandbox.wait_ready()
    seek = """import gc, osd._engine.host as host
host.load_code = host.keep = None
def f(): pass
gc.collect()
parts = [part for o in gc.get_objects() if type(o) is tuple for part in o]
found = [p for p in parts if type(p) is type(f.__code__) and p.co_filename == "kept.py"]
print(len(found))"""
    assert sandbox.run_another(seek).stdout == b"0\n"
    sandbox.wait_ready()
    assert echo(sandbox, slot=1, kept=True, name="kept.py").result == b'"a 1"'
    sandbox.wait_ready()


LIGHT = """import json, os, sys
def main(args):
    before = [hasattr(json, "mark"), "mark" in os.environ, "mark" in sys.path, open_descriptors()]
    json.mark, os.environ["mark"] = 1, "1"
    sys.path.append("mark")
    os.dup(0)
    return before
def open_descriptors():
    return [fd for fd in range(5, 64) if there(fd)]
def there(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
"""


def test_between_calls_of_one_function_little_remains(sandbox: Sandbox) -> None:
    """Lists that were changed in place may, until the clean-up before another job."""
    for kept in (False, True, True):
        outcome = echo(sandbox, LIGHT, slot=1, kept=kept, lightly=True)
        in_json, in_environment, in_path, descriptors = json.loads(outcome.result)
        assert (in_json, in_environment, descriptors) == (False, False, [])
        assert kept or not in_path
        sandbox.wait_ready()
    sandbox.answer(a=CLEAN)
    sandbox.wait_ready()
    print_path = "import sys; print('mark' in sys.path)"
    assert sandbox.run_another(print_path).stdout == b"False\n"
    sandbox.wait_ready()


def test_what_a_function_has_hidden_is_found_before_other_jobs(daemon: Daemon) -> None:
    hide = (
        "import string\ndef main(args):\n    string.capwords.__defaults__ = (args,)\n    return 1\n"
    )
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    for kept in (False, True):
        assert echo(sandbox, hide, slot=1, kept=kept, lightly=True).result == b"1"
        sandbox.wait_ready()
    sandbox.answer(a=CLEAN)
    assert sandbox.wait_exit().code == 0
    sandbox.close()


def test_code_that_is_not_kept_says_so(sandbox: Sandbox) -> None:
    broken = echo(sandbox, "def main(:", slot=3)
    assert broken.kind == FINISH_EXCEPTION and "SyntaxError" in broken.line and not broken.kept
    sandbox.wait_ready()
    outcome = echo(sandbox, slot=3, kept=True)
    assert outcome.line == "osd._engine.host.BadCode: the code was not kept"
    sandbox.wait_ready()
    assert echo(sandbox, slot=3).result == b'"a 1"'


def test_a_result_at_the_exit_is_the_last(sandbox: Sandbox) -> None:
    code = "import atexit, osd\ndef main(args):\n    atexit.register(osd.result, 2)\n    return 1\n"
    assert echo(sandbox, code).result == b"2"
    sandbox.wait_ready()
    long = echo(sandbox, "def main(args):\n    return bytes(40000)")
    assert len(long.result) == 40000 and 3 in long.calls


def test_data_pass_a_function_in_place(sandbox: Sandbox) -> None:
    code = (
        "import gc, osd\n"
        "class Hidden:\n    views = []\n"
        "def main(args):\n"
        "    stage = osd.stage(args)\n"
        "    Hidden.views.append(stage.view)\n"
        "    print(stage.view.readonly, stage.data == stage.view, stage.options)\n"
        "    return stage.view\n"
    )
    data = bytes(range(251)) * 4000
    args = bytes((0, 1, 0, 3)) + bytes(20) + b"k=v" + data
    for place in ("in_shared", "in_memfd", "in_shared"):
        job = {"method": "main", "stage": True, "args_encoding": 1, place: True}
        outcome = sandbox.run_another(code, args=args, **job)
        assert outcome.stdout == b"True True {'k': 'v'}\n", outcome.traceback
        assert outcome.result == data and outcome.placed, "the result stays in the memory"
        sandbox.wait_ready()


def test_a_job_comes_by_the_socket_as_well(sandbox: Sandbox) -> None:
    for by_socket in (False, True, False, True):
        assert sandbox.run_another("print(1)", by_socket=by_socket).stdout == b"1\n"
        sandbox.wait_ready()


@pytest.mark.parametrize(
    "code",
    [
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "import sys; sys.addaudithook(lambda *a: None)",
        "import os; os.dup2(0, 1)",
        "import os; os.close(2)",
        "import os; os.set_blocking(1, False)",
        "import sys; del sys.modules['__main__']",
        "class Late:\n    def __del__(self):\n        import os; os._exit(5)\nlate = Late()",
    ],
    ids=[
        "thread",
        "audit hook",
        "moved pipe",
        "closed pipe",
        "non-blocking pipe",
        "no main",
        "exit",
    ],
)
def test_what_cannot_be_undone_ends_the_sandbox(daemon: Daemon, code: str) -> None:
    sandbox = daemon.spawn(Limits(processes=4))
    sandbox.wait_ready()
    assert sandbox.run_another(code).kind == FINISH_OK
    assert sandbox.wait_exit().code in (0, 5)
    sandbox.close()


def test_a_pristine_sandbox_ends_after_its_job(daemon: Daemon) -> None:
    out = daemon.run("print(1)")
    assert out.status is not None and out.status.code == 0
