# SPDX-License-Identifier: GPL-2.0-or-later
"""Running a job: hand-over, output, every way to end, what a script can rely on."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from objects import MemoryObjects
from proxy import (
    CONTROL_END,
    CONTROL_PING,
    FINISH_ENDED,
    FINISH_EXCEPTION,
    FINISH_EXIT,
    FINISH_MEMORY,
    FINISH_OK,
    PEAK_AT,
    ROOT,
    Daemon,
    Limits,
)

from tests.waiting import until


def test_listing_one_of_the_paper(daemon: Daemon) -> None:
    out = daemon.run((ROOT / "examples" / "listing1.py").read_bytes())
    assert out.stderr == b""
    assert out.stdout == Path(__file__).with_name("listing1.golden").read_bytes()


def test_arguments_zone_and_job(daemon: Daemon) -> None:
    out = daemon.run(
        "import osd, sys; print(osd.args, osd.zone, osd.job, sys.argv, __name__, __file__)",
        args=json.dumps(["a", "b"]).encode(),
        args_encoding=2,
        zone=(2, 0x10000, 0),
        job=(0x10000, 0x10009),
        name="count.py",
    )
    assert out.stdout.decode().strip() == (
        "['a', 'b'] osd.partition(0x10000) osd.userobject(0x10000, 0x10009) "
        "['count.py', 'a', 'b'] __main__ count.py"
    )


def test_bytes_as_arguments(daemon: Daemon) -> None:
    out = daemon.run("import osd; print(osd.args)", args=b"\x00\xff", args_encoding=1)
    assert out.stdout == b"b'\\x00\\xff'\n"


def test_large_code_comes_in_a_memfd(daemon: Daemon) -> None:
    code = "# a line of comment\n" * 200_000 + "print(1)"
    assert daemon.run(code, in_memfd=True).stdout == b"1\n"


def test_large_code_comes_in_the_shared_memory(daemon: Daemon) -> None:
    code = "# a line of comment\n" * 200_000 + "print(1)"
    assert daemon.run(code, in_shared=True).stdout == b"1\n"


@pytest.mark.parametrize(
    ("code", "kind", "exit_code", "line"),
    [
        ("pass", FINISH_OK, 0, ""),
        ("raise SystemExit", FINISH_OK, 0, ""),
        ("import sys; sys.exit(0)", FINISH_OK, 0, ""),
        ("import sys; sys.exit(1)", FINISH_EXIT, 1, "exit code 1"),
        ("import sys; sys.exit(255)", FINISH_EXIT, 255, "exit code 255"),
        ("import sys; sys.exit('text')", FINISH_EXIT, 1, "text"),
        ("1 / 0", FINISH_EXCEPTION, 1, "ZeroDivisionError: division by zero"),
        ("raise KeyError('\\ud800')", FINISH_EXCEPTION, 1, r"KeyError: '\ud800'"),
        ("def f(): f()\nf()", FINISH_EXCEPTION, 1, "RecursionError: maximum recursion depth"),
        ("x = [bytes(1 << 20) for _ in range(10**6)]", FINISH_MEMORY, 1, "MemoryError"),
        ("import osd; raise osd.Ended('x')", FINISH_ENDED, 1, "osd.Ended: x"),
        ("x = 1\ny = (", FINISH_EXCEPTION, 1, "SyntaxError: '(' was never closed"),
        ("\0", FINISH_EXCEPTION, 1, "ValueError: source code string cannot contain null bytes"),
        ("class E(BaseException): pass\nraise E", FINISH_EXCEPTION, 1, "E"),
        ("class E(Exception):\n def __str__(s): 1/0\nraise E", FINISH_EXCEPTION, 1, ""),
    ],
)
def test_ends(daemon: Daemon, code: str, kind: int, exit_code: int, line: str) -> None:
    out = daemon.run(code)
    assert (out.kind, out.exit_code) == (kind, exit_code)
    assert out.line.startswith(line)
    assert out.status and out.status.code == exit_code
    assert bool(out.traceback) == (kind not in (FINISH_OK, FINISH_EXIT))
    if kind not in (FINISH_OK,):
        assert out.stderr or kind == FINISH_EXIT


def test_traceback_shows_the_script_and_nothing_of_ours(daemon: Daemon) -> None:
    out = daemon.run("def broken():\n    return 1 / 0\n\nbroken()\n", name="sum.py")
    assert out.traceback == (
        "Traceback (most recent call last):\n"
        '  File "sum.py", line 4, in <module>\n    broken()\n'
        '  File "sum.py", line 2, in broken\n    return 1 / 0\n           ~~^~~\n'
        "ZeroDivisionError: division by zero\n"
    )
    assert out.stderr.decode() == out.traceback


def test_a_job_without_a_name_has_source_lines_too(daemon: Daemon) -> None:
    out = daemon.run("import traceback\n1 / 0", name="")
    assert '  File "<script>", line 2, in <module>\n    1 / 0\n' in out.traceback


def test_syntax_error_names_the_line(daemon: Daemon) -> None:
    out = daemon.run("a = 1\nb = = 2\n", name="bad.py")
    assert 'File "bad.py", line 2' in out.traceback
    assert "b = = 2" in out.traceback


@pytest.mark.parametrize(
    "sabotage",
    [
        "import traceback; traceback.format_exception = None",
        "import sys; sys.stderr = sys.stdout = None",
        "import builtins; builtins.isinstance = None",
        "import builtins; del builtins.type",
        "import sys; sys.modules.clear()",
        "import osd._engine.host as h; h.report_error = None",
        "import os; os.close(2)",
    ],
)
def test_a_report_comes_out_whatever_was_broken(daemon: Daemon, sabotage: str) -> None:
    out = daemon.run(f"{sabotage}\nraise ValueError('told')")
    assert out.kind == FINISH_EXCEPTION
    assert "ValueError" in out.line or "Error" in out.line


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os; os._exit(7)", 7),
        ("import os; os.abort()", -signal.SIGSEGV),
        (
            "import sys\nsys.setrecursionlimit(10**9)\nx = []\n"
            "for _ in range(10**5): x = [x]\nrepr(x)",
            -signal.SIGSEGV,
        ),
    ],
)
def test_ends_without_a_word(daemon: Daemon, code: str, expected: int) -> None:
    out = daemon.run(code)
    assert out.kind is None
    assert out.status and out.status.code in (expected, -signal.SIGABRT)


def test_output_is_bytes_in_order(daemon: Daemon) -> None:
    out = daemon.run(
        "import sys, os\n"
        "print('one'); sys.stdout.write('two'); sys.stdout.flush()\n"
        "sys.stdout.buffer.write(b'\\xff\\x00')\n"
        "sys.stdout.flush(); os.write(1, b'three'); print('\\udcff', end='')\n"
        "print('err', file=sys.stderr)"
    )
    assert out.stdout == b"one\ntwo\xff\x00three\xff"
    assert out.stderr == b"err\n"


def test_lines_appear_while_the_script_runs(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("import time\nprint('first')\ntime.sleep(1000)")
    sandbox.read_until(b"first\n")
    sandbox.kill()
    assert sandbox.wait_exit().code == -signal.SIGKILL
    sandbox.close()


def test_more_output_than_a_pipe_holds(daemon: Daemon) -> None:
    out = daemon.run("print('x' * 9_999_999)")
    assert len(out.stdout) == 10_000_000


def test_closed_stdout_harms_nobody(daemon: Daemon) -> None:
    assert daemon.run("import sys; sys.stdout.close()").kind == FINISH_OK
    assert daemon.run("import os; os.close(1); print('x')").kind == FINISH_EXCEPTION


def test_exit_functions_and_threads_are_waited_for(daemon: Daemon) -> None:
    out = daemon.run(
        "import atexit, threading, time\n"
        "atexit.register(print, 'last')\n"
        "def work(): time.sleep(0.1); print('thread')\n"
        "threading.Thread(target=work).start()",
        Limits(processes=2),
    )
    assert out.stdout == b"thread\nlast\n"


def test_result_progress_and_log(daemon: Daemon) -> None:
    out = daemon.run(
        "import osd\n"
        "osd.progress(None); osd.progress(0.5, 'half'); osd.progress(1, 'x' * 300)\n"
        "osd.result({'a': 1}); osd.log('note')"
    )
    assert out.progress == [(0xFFFF, ""), (500, "half"), (1000, "x" * 256)]
    assert (out.result, out.result_encoding) == (b'{"a": 1}', 1)
    assert out.stderr == b"note\n"
    out = daemon.run("import osd; osd.result(bytes(3 << 20)); osd.result(b'last')")
    assert (out.result, out.result_encoding) == (b"last", 0)


def test_ping_is_answered_while_a_regex_runs_wild(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("print('on')\nimport re\nre.match('(a+)+$', 'a' * 40 + 'b')")
    sandbox.read_until(b"on\n")
    before = int.from_bytes(sandbox.memory[PEAK_AT : PEAK_AT + 8], "little")
    sandbox.control(CONTROL_PING)
    until(sandbox.heeded)
    assert int.from_bytes(sandbox.memory[PEAK_AT : PEAK_AT + 8], "little") >= before > 0
    sandbox.kill()
    assert sandbox.wait_exit().code == -signal.SIGKILL
    sandbox.close()


@pytest.mark.parametrize("busy", ["while True: pass", "__import__('time').sleep(1000)"])
def test_end_lets_the_script_clean_up(daemon: Daemon, busy: str) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(
        f"import osd\ntry:\n    print('on')\n    {busy}\n"
        "except Exception: print('caught')\nfinally: print('cleaned up')"
    )
    sandbox.read_until(b"on\n")
    sandbox.control(CONTROL_END)
    out = sandbox.finish()
    sandbox.close()
    assert (out.kind, out.stdout) == (FINISH_ENDED, b"on\ncleaned up\n")


def test_end_before_a_blocking_call_is_not_lost(daemon: Daemon) -> None:
    """One bytecode prints, computes and sleeps, in C: the first signal comes while it computes, and
    nobody looks for signals any more before the sleep begins."""
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(
        "import collections, functools, operator, os, time\n"
        "steps = [functools.partial(os.write, 1, b'on\\n'), functools.partial(sum, range(1 << 25)),\n"
        "         functools.partial(time.sleep, 1000)]\n"
        "try: collections.deque(map(operator.call, steps), 0)\nfinally: print('cleaned up')"
    )
    sandbox.read_until(b"on\n")
    sandbox.control(CONTROL_END)
    out = sandbox.finish()
    sandbox.close()
    assert (out.kind, out.stdout) == (FINISH_ENDED, b"on\ncleaned up\n")


def test_end_before_the_script_begins_is_not_lost(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.control(CONTROL_END)
    sandbox.start("import time\ntry: time.sleep(1000)\nfinally: print('cleaned up')")
    out = sandbox.finish()
    sandbox.close()
    assert out.kind == FINISH_ENDED


def test_imports_that_are_promised(daemon: Daemon) -> None:
    source = (ROOT / "pyosd" / "osd" / "_engine" / "host.py").read_text()
    names = re.search(r'PRELOAD = """(.*?)"""', source, re.S)
    assert names
    out = daemon.run(
        f"import importlib, sys\nfor name in {names[1].split()}:\n"
        "    assert name in sys.modules, name\n    importlib.import_module(name)"
    )
    assert out.kind == FINISH_OK, out.stderr


def test_ordinary_work(daemon: Daemon) -> None:
    out = daemon.run(
        "import re, json, collections, struct, hashlib, math, datetime, decimal, csv, io, gzip, zlib\n"
        "import bz2, lzma, random, statistics, uuid, zoneinfo, heapq, textwrap, tomllib, pickle\n"
        "assert re.findall(r'\\d+', 'a1b22') == ['1', '22']\n"
        "assert json.loads(json.dumps({'k': [1, None]})) == {'k': [1, None]}\n"
        "assert hashlib.sha256(b'').hexdigest().startswith('e3b0c442')\n"
        "assert gzip.decompress(gzip.compress(b'x' * 999)) == b'x' * 999\n"
        "assert bz2.decompress(bz2.compress(b'y')) == b'y' and lzma.decompress(lzma.compress(b'z'))\n"
        "assert datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris')).utcoffset()\n"
        "assert decimal.Decimal(1) / 3 and statistics.mean([1, 2]) == 1.5 and uuid.uuid4()\n"
        "assert list(csv.reader(io.StringIO('a,b'))) == [['a', 'b']]\n"
        "assert datetime.datetime.strptime('2026', '%Y')\n"
        "print(len(bytes(64 << 20)))"
    )
    assert out.stdout == b"67108864\n", out.stderr


def test_every_number_of_a_call_is_the_header_s() -> None:
    header = (ROOT / "target" / "wire" / "proxy_frame.h").read_text()
    table = header[header.index("#define OSD_CALLS") : header.index("enum osd_call_op")]
    wanted = {name: int(number) for number, name in re.findall(r"X\((\d+), (\w+)\)", table)}
    source = (ROOT / "pyosd" / "osd" / "_transport.py").read_text()
    calls = source[source.index("class Call") : source.index("@dataclass")]
    assert {n: int(v) for n, v in re.findall(r"    (\w+) = (\d+)", calls)} == wanted


def test_frames_from_nobody_s_codec(daemon: Daemon) -> None:
    """An answer that is malformed is an error of the script's call, not a crash."""
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("import osd\ntry: osd.root().exists()\nexcept SystemError as e: print(e)")
    assert sandbox.next_call()
    sandbox.answer(code=99)
    out = sandbox.finish(MemoryObjects())
    sandbox.close()
    assert out.stdout == b"malformed answer from the proxy\n"


def test_what_honest_scripts_do_with_the_library(daemon: Daemon) -> None:
    script = Path(__file__).with_name("library_calls.py")
    out = daemon.run(script.read_bytes())
    assert out.kind == FINISH_OK, out.traceback
    assert out.stdout.split()[-1] == b"takes_memory"


def test_a_function_of_the_proxy_is_loaded_once(daemon: Daemon) -> None:
    """Its code comes in pieces, it is left however it ends, and its module stays for the job."""
    objects = MemoryObjects()
    code = b"import osd\nseen = []\ndef main(args):\n    seen.append(args)\n    return 6 // args, seen\n"
    objects.functions["six"] = (1, code)
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(
        "import osd\n"
        "print(osd.call('six', 2))\n"
        "try: osd.call('six', 0)\n"
        "except ZeroDivisionError: print(osd.call('six', 3))\n"
        "try: osd.call('seven')\n"
        "except osd.NotFound as error: print(error)\n"
    )
    out = sandbox.finish(objects)
    sandbox.close()
    assert out.stdout.decode() == (
        "(3, [2])\n(2, [2, 0, 3])\nfunction seven: no active function has this name\n"
    ), out.stderr
    assert not objects.entered
    assert objects.code_calls == -(-len(code) // 16)
