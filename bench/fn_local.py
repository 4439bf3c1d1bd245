# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of examples/functions that data pass through, compiled for this machine and called here."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from bench.compile import compiled
from bench.target import SOURCE
from pyosd.types import Buffer

KIT = SOURCE / "examples/functions"


@cache
def _library(name: str) -> ctypes.CDLL:
    flags = ("-O3", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{KIT}", str(KIT / f"{name}.c"))
    library = ctypes.CDLL(str(compiled("fn_local.c", f"fn_local_{name}.so", flags)))
    library.fn_output.restype = ctypes.c_void_p
    return library


def local(name: str, method: str = "main", parameters: str = "") -> Callable[[Buffer], bytes]:
    """What a method of NAME.c makes of a whole object.  For one thread.

    The result raises ValueError: the method has failed.  Raises: CannotCompile.
    """
    library = _library(name)
    entry = library[f"osd_function_{method}"]
    text = parameters.encode()

    def compute(data: Buffer) -> bytes:
        view, length = memoryview(data), ctypes.c_size_t()
        whole = bytes(view) if view.readonly else (ctypes.c_char * view.nbytes).from_buffer(view)
        library.fn_input(text, ctypes.c_size_t(len(text)), whole, ctypes.c_size_t(view.nbytes))
        if code := entry():
            raise ValueError(f"{name}@{method}:{parameters} failed with {code}")
        at = library.fn_output(ctypes.byref(length))
        return ctypes.string_at(at, length.value)

    return compute
