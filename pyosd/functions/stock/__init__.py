# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that come with iosd: for data that pass through them (docs/views.md), and for hooks
(docs/hooks.md).

Each is a file of this folder, or an entry point of one.  It is stored in a target, and runs there
alone.  image.wasm is compiled from examples/functions/image.c (`make -C examples/functions stock`),
because users of functions need no compiler.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pyosd.functions.manifest import Access, Contract, OutputSize, RecordForm

__all__ = ["STOCK", "StockFunction"]


@dataclass(frozen=True)
class StockFunction:
    """A function that comes with iosd.

    methods: the first is for READ.  contract: of a function that data pass through.  description: text
    for people.  package: of Python, which the package set of its pool must have; "": none.
    parameters: their names.  needed: the one that it cannot do without; "": none.
    """

    file: Path
    methods: tuple[str, ...]
    contract: Contract | None
    description: str
    access: Access = Access.NONE
    package: str = ""
    parameters: tuple[str, ...] = ()
    needed: str = ""

    @property
    def engine(self) -> str:
        """The engine that runs it."""
        return "wasm" if self.file.suffix == ".wasm" else "python"

    @property
    def sha256(self) -> str:
        """Of its code, in hexadecimal."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def check(self, name: str, text: str) -> None:
        """Parameters as they are attached: NAME=VALUE&NAME=VALUE.  Raises: ValueError: a wrong name."""
        given = [each.partition("=")[0] for each in text.split("&") if each]
        known = (
            f"its parameters are {', '.join(self.parameters)}" if self.parameters else "it has none"
        )
        for each in given:
            if each not in self.parameters:
                raise ValueError(f"'{name}' has no parameter '{each}'; {known}")
        if self.needed and self.needed not in given:
            raise ValueError(f"'{name}' needs the parameter {self.needed}=...")


_LINES = Contract(OutputSize.UNKNOWN, deterministic=True, records=RecordForm.LINES)
_TABLE = Contract(OutputSize.UNKNOWN, deterministic=True, records=RecordForm.TABLE)
# Not deterministic, so that the disk never has what a cipher returns.
_CIPHER = Contract(OutputSize.UNKNOWN, inverse="encrypt")  # padded
_SEALED = Contract(OutputSize.FIXED, ratio=(-28, 1, 1), inverse="encrypt")  # without nonce and tag
_IMAGE = Contract(OutputSize.UNKNOWN, deterministic=True)
_PIXELS = Contract(OutputSize.SAME, deterministic=True)  # header and length stay
_FOLDER = Path(__file__).parent
_IMAGES = _FOLDER / "image.wasm"

STOCK = MappingProxyType(
    {
        "gzip": StockFunction(
            _FOLDER / "gzipped.py",
            ("decompress", "compress"),
            Contract(OutputSize.UNKNOWN, inverse="compress", deterministic=True),
            "Decompress gzip; compress when written",
            parameters=("level",),
        ),
        "zstd": StockFunction(
            _FOLDER / "zstd.py",
            ("decompress", "compress"),
            Contract(OutputSize.UNKNOWN, inverse="compress", deterministic=True),
            "Decompress Zstandard; compress when written",
            package="pyarrow",
            parameters=("level",),
        ),
        "csv": StockFunction(
            _FOLDER / "rows.py",
            ("main",),
            _TABLE,
            "Select rows and columns of CSV",
            parameters=(
                "columns",
                "where",
                "is",
                "separator",
            ),
        ),
        "count": StockFunction(
            _FOLDER / "count.py",
            ("main",),
            None,
            "Derive bytes, lines, least and greatest number of a text",
            Access.READ,
            parameters=(
                "column",
                "separator",
            ),
        ),
        "worm": StockFunction(
            _FOLDER / "worm.py",
            ("main",),
            None,
            "Forbid changes of what was written",
            parameters=(
                "days",
                "append",
            ),
        ),
        "schema": StockFunction(
            _FOLDER / "schema.py",
            ("main",),
            None,
            "Derive the columns of CSV",
            Access.READ,
            parameters=("separator",),
        ),
        "jsonl": StockFunction(
            _FOLDER / "jsonl.py",
            ("main",),
            _LINES,
            "Select objects and fields of JSON lines",
            parameters=(
                "fields",
                "where",
                "is",
            ),
        ),
        "aes-gcm": StockFunction(
            _FOLDER / "aesgcm.py",
            ("decrypt", "encrypt"),
            _SEALED,
            "Decrypt with AES-GCM; encrypt when written",
            package="cryptography",
            parameters=("key",),
            needed="key",
        ),
        "blowfish": StockFunction(
            _FOLDER / "blowfish.py",
            ("decrypt", "encrypt"),
            _CIPHER,
            "Decrypt with Blowfish; encrypt when written",
            package="cryptography",
            parameters=("key",),
            needed="key",
        ),
        "parquet": StockFunction(
            _FOLDER / "parquet.py",
            ("main",),
            Contract(OutputSize.UNKNOWN, deterministic=True),
            "Select rows and columns of Parquet",
            package="pyarrow",
            parameters=(
                "columns",
                "where",
                "is",
                "as",
            ),
        ),
        "lines": StockFunction(
            _FOLDER / "lines.py",
            ("main",),
            _LINES,
            "Select lines that contain a text",
            parameters=(
                "contains",
                "invert",
            ),
            needed="contains",
        ),
        "edge": StockFunction(_IMAGES, ("edge",), _PIXELS, "Find the edges of a PGM or PPM image"),
        "edge-bitmap": StockFunction(
            _IMAGES,
            ("bitmap",),
            _IMAGE,
            "Find the edges of a PGM or PPM image, as a PBM bitmap",
            parameters=("threshold",),
        ),
        "median": StockFunction(
            _IMAGES, ("median",), _PIXELS, "Smooth a PGM or PPM image with a median filter"
        ),
        "thumbnail": StockFunction(
            _IMAGES,
            ("thumbnail",),
            _IMAGE,
            "Reduce a PGM or PPM image to a thumbnail",
            parameters=("size",),
        ),
    }
)
"""The functions by name."""
