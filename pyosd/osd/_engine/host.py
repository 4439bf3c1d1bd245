# SPDX-License-Identifier: GPL-2.0-or-later
"""The Python half of the engine `python` (sandbox/python/python_engine.c): it imports modules
early, runs the code of a job, and describes its end.  Loaded in the zygote only.

A script can change modules that this file uses. The report of its end must still work. Functions
that are needed after the script are therefore bound here before it runs. If even that fails,
python_engine.c has a text of its own.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import errno
import functools
import gc
import importlib
import json
import marshal
import mmap
import os
import signal
import sys
import threading
import traceback
import zlib
from contextvars import copy_context
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from .. import _archive
from .._current import use
from .._errors import Ended
from .._job import encode_result, send_result
from .._sandbox import SandboxTransport, core
from .._transport import Context, unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["keep", "preload", "rehearse", "run"]

# Modules that scripts find already imported.  Other pure Python modules of the standard library can
# still be imported; extension modules cannot, because the filter denies executable memory.
# The line with `_sqlite3` holds the compiled halves of sqlite3, cProfile and the East Asian codecs.
PRELOAD = """
    abc array ast base64 binascii bisect bz2 calendar cmath codecs collections collections.abc
    contextlib copy csv dataclasses datetime decimal difflib enum errno fnmatch fractions functools
    gzip hashlib heapq hmac io ipaddress itertools json linecache locale lzma math mmap numbers
    operator os os.path pathlib pickle pprint queue random re secrets shlex stat statistics string
    stringprep struct textwrap threading time timeit tokenize traceback types typing unicodedata
    urllib.parse uuid warnings weakref zlib zoneinfo _strptime encodings.ascii encodings.idna
    encodings.latin_1 encodings.utf_16 encodings.utf_8 encodings.utf_8_sig
    _sqlite3 _lsprof _multibytecodec _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw
""".split()

FINISH_OK, FINISH_EXCEPTION, FINISH_EXIT, FINISH_MEMORY, FINISH_ENDED = range(5)
FINISH_BAD_CODE, FINISH_CODE_LIMIT, FINISH_THREADS, FINISH_FILES = 5, 6, 7, 8
ARGS_BYTES, ARGS_JSON = 1, 2
CODE_ZLIB, CODE_BYTECODE = 1, 4  # bits of the code's form
CODE_MOST = 16 << 20  # bytes, expanded
PYC_HEADER = 16  # bytes: magic number, flags, what the source was
TRACEBACK_HEAD, TRACEBACK_TAIL = 8 << 10, 48 << 10  # bytes kept of a longer one
NAMELESS = "<script>"  # in tracebacks of a job without a name
LINE_BYTES = 256  # the surrogate's message
RESERVE_BYTES = 256 << 10
RESULT_BYTES = 32 << 10  # of a result that the report of a job's end carries

# Run this in the zygote until the interpreter has specialised the code that each job executes. The
# interpreter then writes to code objects once, and not to separate pages of every sandbox.
DRY_RUN = b"import osd\ndef f(x):\n    return x\nf(osd.args)\nprint(end='')\n"
DRY_RUNS = 20

# Exit code, kind, traceback, one line for people; the result of a function, if it is short: 1 bytes,
# 2 JSON, else 0.
EndReport = tuple[int, int, bytes, bytes, int, bytes]
KeptCode = tuple[CodeType, tuple[str, ...], int]  # the lines of its source, and their bytes
NO_RESULT = 0, b""


# Given back when memory runs out, so that there is some to say so; never touched, so it costs none.
reserve = mmap.mmap(-1, RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

format_exception = traceback.format_exception
format_exception_only = traceback.format_exception_only
clear_frames = traceback.clear_frames
write = os.write
wait_for_threads: Callable[[], None] = threading._shutdown  # type: ignore[attr-defined]
count_threads = _thread._count  # but the main one
run_exit_functions = atexit._run_exitfuncs
count_exit_functions = atexit._ncallbacks
clear_exit_functions = atexit._clear


def preload() -> None:
    """Import what scripts may want of the standard library."""
    for name in PRELOAD:
        importlib.import_module(name)
    keep_sqlite_in_memory()
    signal.signal(signal.SIGTERM, core.on_end)
    open_streams()


def keep_sqlite_in_memory() -> None:
    """Let SQLite sort and group in memory: by default it does so in files once it has much to sort.

    The scratch folder of a sandbox is smaller than its memory, and some have none.
    """
    sqlite = sys.modules["_sqlite3"]
    connect, execute = sqlite.connect, sqlite.Connection.execute

    @functools.wraps(connect)
    def connect_in_memory(*args: object, **options: object) -> object:
        connection = connect(*args, **options)
        execute(connection, "PRAGMA temp_store = MEMORY").close()
        return connection

    sqlite.connect = connect_in_memory  # type: ignore[attr-defined]


def rehearse() -> None:
    """Run trivial jobs, so that what they touch first is not touched first in every sandbox."""
    for _ in range(DRY_RUNS):
        run(DRY_RUN, None, 0, "dry run", "", 0, b"", 1, (0, 0), (0, 0), (0, 0))


def open_streams() -> None:
    """Open the standard streams: lines appear as they are printed, text is UTF-8 for any host."""
    for name, fd, mode, errors in (
        ("stdin", 0, "r", "surrogateescape"),
        ("stdout", 1, "w", "surrogateescape"),
        ("stderr", 2, "w", "backslashreplace"),
    ):
        stream = open(fd, mode, 1, "utf-8", errors, closefd=False)  # noqa: SIM115 -- for good
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def open_reserve() -> None:
    """Set the reserve aside, again where it was given back."""
    global reserve  # noqa: PLW0603 -- one process, one interpreter
    if reserve.closed:
        reserve = mmap.mmap(-1, RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def keep(code: bytes, name: str) -> KeptCode | None:
    """Compile the code of a function for this job and later ones; None: it is not kept.

    Only python_engine.c knows the kept code, out of reach of scripts.  It is made before the job
    and frozen, because what is not frozen is a job's (hygiene.py).

    Raises: what compile() raises.
    """
    if code.startswith(_archive.MAGIC):
        return None
    compiled = compile(code, name or NAMELESS, "exec", dont_inherit=True)
    kept = compiled, tuple(_archive.lines_of(code)), len(code)
    gc.freeze()
    return kept


def run(
    code: bytes | None,
    kept: KeptCode | None,
    form: int,
    name: str,
    method: str,
    args_encoding: int,
    args: bytes,
    zone_type: int,
    zone: tuple[int, int],
    job: tuple[int, int],
    place: tuple[int, int],
) -> EndReport:
    """Run a job's code as __main__ and report how it ended.

    code: None if it is kept.
    method: the code is a function, and this entry point is called with the arguments; "": it is a script.
    place: of a member of an array, how far its id is behind the array's, and its index; else zeros.
    """
    try:
        context = Context(
            decode_args(args_encoding, args), zone_type, zone, job, *in_array(job, place)
        )
        context = unwrapped(context)
        use(SandboxTransport(context))
        found = execute((code, kept, form), name, method, context)
    except BaseException as error:
        core.script(False)
        reserve.close()
        return *report_error(error), *NO_RESULT
    return 0, FINISH_OK, b"", b"", *found


def in_array(job: tuple[int, int], place: tuple[int, int]) -> tuple[tuple[int, int], int | None]:
    behind, index = place
    return ((job[0], job[1] - behind), index) if behind else ((0, 0), None)


def decode_args(encoding: int, args: bytes) -> object:
    if encoding == ARGS_JSON:
        return json.loads(args)
    return args if encoding == ARGS_BYTES else None


class BadCode(Exception):
    """Packed code, or byte-code, that cannot be read."""


class CodeTooLong(BadCode):
    """It expands to more than a job may have."""


def expand(packed: bytes) -> bytes:
    """One zlib stream, whole, with nothing behind it."""
    stream = zlib.decompressobj()
    try:
        code = stream.decompress(packed, CODE_MOST + 1)
    except zlib.error as error:
        raise BadCode(f"the code is no zlib stream: {error}") from None
    if len(code) > CODE_MOST:
        raise CodeTooLong(f"the code expands to more than {CODE_MOST >> 20} MiB")
    if not stream.eof:
        raise BadCode("the code's zlib stream is cut short")
    if stream.unused_data:
        raise BadCode("bytes behind the code's zlib stream")
    return code


def load_bytecode(file: bytes) -> CodeType:
    """The code in a .pyc file.  Its instructions are believed, as the machine's would be."""
    if file[: len(MAGIC_NUMBER)] != MAGIC_NUMBER:
        found, own = file[: len(MAGIC_NUMBER)].hex(), MAGIC_NUMBER.hex()
        release = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise BadCode(f"not byte-code of Python {release}: magic number {found}, not {own}")
    try:
        code = marshal.loads(file[PYC_HEADER:])
    except (EOFError, ValueError, TypeError) as error:
        raise BadCode(f"the byte-code is damaged: {error}") from None
    if not isinstance(code, CodeType):
        raise BadCode(f"the byte-code is a {type(code).__name__}, not a module")
    return code


NO_THREAD = ("can't start new thread",)  # what CPython gives the exception for it
KINDS: tuple[tuple[type[BaseException], int], ...] = (
    (Ended, FINISH_ENDED),
    (CodeTooLong, FINISH_CODE_LIMIT),
    (BadCode, FINISH_BAD_CODE),
)


Given = tuple[bytes | None, KeptCode | None, int]  # of run(): code, kept, form


def load_code(given: Given, name: str) -> CodeType:
    code, kept, form = given
    if kept is not None:
        compiled, lines, length = kept
        _archive.show_code(name, length, list(lines))
        return compiled
    if code is None:
        raise BadCode("the code was not kept")
    if form & CODE_ZLIB:
        code = expand(code)
    if code.startswith(_archive.MAGIC):
        code, name = enter_archive(code, name)
    return load_bytecode(code) if form & CODE_BYTECODE else _archive.compile_code(code, name)


def enter_archive(code: bytes, name: str) -> tuple[bytes, str]:
    """Make the modules that came with the script importable; the script, and its name."""
    try:
        return _archive.enter(code, name)
    except ValueError as error:
        raise BadCode(str(error)) from None


def execute(given: Given, name: str, method: str, context: Context) -> tuple[int, bytes]:
    """The result of a function, if it is short."""
    name = name or NAMELESS
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=name)
    sys.modules["__main__"] = main
    args = context.args
    words = args if isinstance(args, list) and all(isinstance(a, str) for a in args) else []
    sys.argv = [name, *words]
    clear_exit_functions()
    return run_main(given, name, (method, args), main.__dict__)


def run_main(
    given: Given, name: str, call: tuple[str, object], namespace: dict[str, object]
) -> tuple[int, bytes]:
    """Run the code, then the entry point that is called, then what it left to be run at its end.

    call: name of the entry point, "" for none, and its argument.

    Short on purpose: entering an exception handler more than 256 instructions into a function needs
    memory, and where there is none left CPython 3.11 tries again for ever.
    """
    found = NO_RESULT
    core.script(True)
    try:
        loaded = load_code(given, name)
        copy_context().run(exec, loaded, namespace)
        if call[0]:
            found = copy_context().run(call_method, namespace, *call)
        if count_threads():
            wait_for_threads()  # once in a process's life: not after a dry run
    finally:
        core.script(False)
        run_exit_functions()
        flush()
    return found


def call_method(namespace: dict[str, object], method: str, args: object) -> tuple[int, bytes]:
    """Call an entry point of a function with the arguments; what it returns is the result.

    A short result travels with the report of the end, unless what runs before that may leave another.
    So does a long one of data that pass through, which stays in the shared memory.
    """
    function = namespace.get(method)
    if not callable(function):
        raise TypeError(f"the function has no entry point {method!r}")
    value = function(args)
    if value is None:
        return NO_RESULT
    encoding, data = encode_result(value)
    if not (count_exit_functions() or count_threads()):
        if len(data) <= RESULT_BYTES:
            return 1 + encoding, bytes(data)
        if core.place(data):
            return 1 + encoding, b""
    send_result(encoding, data)
    return NO_RESULT


def flush() -> None:
    """The output of the script is in the pipes before the job ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # replaced, closed or broken by the script: its loss


# ---- how it ended ------------------------------------------------------------------------------


def report_error(error: BaseException) -> tuple[int, int, bytes, bytes]:
    if isinstance(error, SystemExit):
        return report_exit(error)
    if is_memory(error):
        clear_frames(error.__traceback__)  # the frames hold what filled it
    text = words_of(error)
    line = last_line(error)
    write_error(text)
    return 1, kind_of(error), text, line


def is_memory(error: BaseException) -> bool:
    """Python's word for it, or the kernel's: what mmap says at the limit."""
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    )


def kind_of(error: BaseException) -> int:
    if is_memory(error):
        return FINISH_MEMORY
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return FINISH_FILES
    if type(error) is RuntimeError and error.args == NO_THREAD:
        return FINISH_THREADS
    for each, kind in KINDS:
        if isinstance(error, each):
            return kind
    return FINISH_EXCEPTION


def report_exit(error: SystemExit) -> tuple[int, int, bytes, bytes]:
    """Exit codes as the interpreter gives them: None 0, a number itself, else 1 and the text."""
    code = error.code
    if code is None or code == 0:
        return 0, FINISH_OK, b"", b""
    if isinstance(code, int):
        return code & 0xFF, FINISH_EXIT, b"", f"exit code {code & 0xFF}".encode()
    try:
        text = str(code)
    except BaseException:
        text = "<unprintable exit text>"
    write_error(text.encode(errors="backslashreplace") + b"\n")
    return 1, FINISH_EXIT, b"", one_line(text)


def words_of(error: BaseException) -> bytes:
    """The traceback, without our own frames; cut in the middle where it is long."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        text = "".join(format_exception(type(error), error, trace)).encode(
            errors="backslashreplace"
        )
    except BaseException:
        text = b"Traceback lost: " + last_line(error) + b"\n"
    if len(text) > TRACEBACK_HEAD + TRACEBACK_TAIL:
        text = text[:TRACEBACK_HEAD] + b"\n  ...\n" + text[-TRACEBACK_TAIL:]
    return text


def last_line(error: BaseException) -> bytes:
    try:
        return one_line(format_exception_only(type(error), error)[-1])
    except BaseException:
        return one_line(type(error).__name__)


def one_line(text: str) -> bytes:
    """At most LINE_BYTES of text fit to be shown: no control characters, whole characters."""
    shown = "".join(c if c.isprintable() or "\ud800" <= c <= "\udfff" else " " for c in text)
    encoded = shown.strip().encode(errors="backslashreplace")[:LINE_BYTES]
    return encoded.decode(errors="ignore").encode()


def write_error(text: bytes) -> None:
    """To standard error itself: sys.stderr is the script's to break."""
    try:
        while text:
            text = text[write(2, text) :]
    except OSError:
        pass  # the script closed it
