# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that can be sent as a job, and code that is refused before anything is sent."""

from __future__ import annotations

import functools
import math
import os
import random
import statistics
import subprocess
import sys
import zlib
from collections.abc import Callable
from json import loads
from pathlib import Path
from re import sub as re_sub

import pytest

from pyosd.jobs.source import (
    PACKED_FROM,
    call_arguments,
    code_bytes,
    code_name,
    encode_args,
    function_source,
    is_bytecode,
    pack,
)
from pyosd.jobs.submission import prepare
from pyosd.types import ROOT
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag
from tests.waiting import DEADLINE_S

FACTOR = 3
FORKED = f"""
import os, signal
from pyosd.cluster.near import run_slice
from pyosd.jobs import source
source._PARSING.acquire()  # as a thread that the child does not have
child = os.fork()
if child:
    os._exit(os.waitpid(child, 0)[1] != 0)
signal.alarm({DEADLINE_S:.0f})
source.function_source(run_slice)
os._exit(0)
"""


def plain(a: int, *rest: int, b: int = 2) -> int:
    import math

    return math.prod([a, b, *rest]) + sum(x for x in rest)


def needs_a_global(a: int) -> int:
    return a * FACTOR


def needs_modules(text: str) -> list[object]:
    return [os.fspath(text), re_sub("a", "b", text), zlib.crc32(b""), loads("[1]")]


def needs_a_local_name() -> int:
    return plain(1)


@functools.cache
def decorated(a: int) -> int:
    return a


async def coroutine() -> int:
    return 1


def closure() -> Callable[[], int]:
    inner_value = 5

    def inside() -> int:
        return inner_value

    return inside


def run(source: str, arguments: bytes) -> object:
    """Run source as a sandbox would, with a stand-in for its package osd."""
    import json
    import sys
    from types import ModuleType

    module = ModuleType("osd")
    results: list[object] = []
    module.args = json.loads(arguments)  # type: ignore[attr-defined]
    module.result = results.append  # type: ignore[attr-defined]
    before = sys.modules.get("osd")
    sys.modules["osd"] = module
    try:
        exec(compile(source, "job", "exec"), {"__name__": "__main__"})
    finally:
        del sys.modules["osd"]
        if before is not None:
            sys.modules["osd"] = before
    return results[-1] if results else None


def test_function_travels_as_source() -> None:
    source = function_source(plain)
    assert run(source, call_arguments([4, 5], {"b": 3})) == 65


def test_imports_travel_by_name() -> None:
    source = function_source(needs_modules)
    assert run(source, call_arguments(["x/a"], {})) == ["x/a", "x/b", 0, [1]]
    assert run(function_source(pow), call_arguments([2, 5], {})) == 32
    assert run(function_source(math.hypot), call_arguments([3, 4], {})) == 5.0
    assert run(function_source(statistics.mean), call_arguments([[1, 3]], {})) == 2


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (needs_a_global, "FACTOR"),
        (needs_a_local_name, "plain"),
        (lambda: 1, "lambda"),
        (closure(), "inner_value"),
        (coroutine, "plain def"),
    ],
)
def test_functions_that_cannot_travel(function: Callable[..., object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        function_source(function)


@pytest.mark.parametrize("thing", [decorated, str.upper, functools.partial(plain, 1)])
def test_things_that_are_no_functions(thing: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="plain function"):
        function_source(thing)


def test_text_bytes_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(b"pass\n")
    assert code_bytes("pass") == b"pass" and code_bytes(b"pass") == b"pass"
    assert code_bytes(path) == b"pass\n" and code_name(path) == "script.py"
    assert code_name(plain) == "plain" and code_name("pass") == ""
    assert code_name(Path("s\udcff.py")) == "s?.py"  # the name of a job is UTF-8
    for text in ("script.py", "a/b.pyz", str(path)):  # the names of files, as texts
        with pytest.raises(ValueError, match="a file is Path"):
            code_bytes(text)
    assert code_bytes("import a.py") == b"import a.py" and code_bytes("a.pyx") == b"a.pyx"


def test_arguments() -> None:
    assert encode_args(None) == (ArgsEncoding.NONE, b"")
    assert encode_args(b"\0") == (ArgsEncoding.BYTES, b"\0")
    assert encode_args([1, {"a": None}]) == (ArgsEncoding.JSON, b'[1, {"a": null}]')
    with pytest.raises(TypeError):
        encode_args(object())


@pytest.mark.parametrize("args", [5, "ab", b"ab", {"a": 1}])
def test_arguments_of_a_function_are_a_list(args: object) -> None:
    """A number was left out, and a text was cut into letters."""
    with pytest.raises(TypeError, match="is a list of its positional arguments"):
        prepare(plain, zone=ROOT, args=args)
    assert prepare(plain, zone=ROOT, args=(1,)).params.args == call_arguments([1], {})


def test_code_is_packed_where_that_pays() -> None:
    long, short = b"x = 1\n" * 1000, b"x = 1\n"
    noise = random.Random(1).randbytes(PACKED_FROM)
    packed, flag = pack(long)
    assert zlib.decompress(packed) == long and flag is ExecFlag.CODE_ZLIB
    for code in (short, noise, b"#" * (PACKED_FROM - 1)):
        assert pack(code) == (code, ExecFlag(0))
    assert pack(long, compress=False) == (long, ExecFlag(0))
    packed, flag = pack(short, compress=True)
    assert zlib.decompress(packed) == short and flag is ExecFlag.CODE_ZLIB


def test_byte_code_is_known_by_its_path() -> None:
    assert is_bytecode(Path("a/job.pyc"))
    assert not is_bytecode(Path("job.py"))
    assert not is_bytecode("job.pyc"), "text is source"


def test_a_forked_child_sends_functions_while_a_thread_of_its_parent_does() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
