# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that come with iosd: for data that pass through them (docs/views.md), and for hooks
(docs/hooks.md).

Each is a file of this folder, or an entry point of one.  It is stored in a target, and runs there
alone.  image.wasm is compiled from examples/functions/image.c (`make -C examples/functions stock`),
because users of functions need no compiler.
"""

from __future__ import annotations

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
    """

    file: Path
    methods: tuple[str, ...]
    contract: Contract | None
    description: str
    access: Access = Access.NONE
    package: str = ""

    @property
    def engine(self) -> str:
        """The engine that runs it."""
        return "wasm" if self.file.suffix == ".wasm" else "python"


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
        ),
        "zstd": StockFunction(
            _FOLDER / "zstd.py",
            ("decompress", "compress"),
            Contract(OutputSize.UNKNOWN, inverse="compress", deterministic=True),
            "Decompress Zstandard; compress when written",
            package="pyarrow",
        ),
        "csv": StockFunction(
            _FOLDER / "rows.py", ("main",), _TABLE, "Select rows and columns of CSV"
        ),
        "count": StockFunction(
            _FOLDER / "count.py",
            ("main",),
            None,
            "Derive bytes, lines, least and greatest number of a text",
            Access.READ,
        ),
        "worm": StockFunction(
            _FOLDER / "worm.py", ("main",), None, "Forbid changes of what was written"
        ),
        "schema": StockFunction(
            _FOLDER / "schema.py", ("main",), None, "Derive the columns of CSV", Access.READ
        ),
        "jsonl": StockFunction(
            _FOLDER / "jsonl.py", ("main",), _LINES, "Select objects and fields of JSON lines"
        ),
        "aes-gcm": StockFunction(
            _FOLDER / "aesgcm.py",
            ("decrypt", "encrypt"),
            _SEALED,
            "Decrypt with AES-GCM; encrypt when written",
            package="cryptography",
        ),
        "blowfish": StockFunction(
            _FOLDER / "blowfish.py",
            ("decrypt", "encrypt"),
            _CIPHER,
            "Decrypt with Blowfish; encrypt when written",
            package="cryptography",
        ),
        "parquet": StockFunction(
            _FOLDER / "parquet.py",
            ("main",),
            Contract(OutputSize.UNKNOWN, deterministic=True),
            "Select rows and columns of Parquet",
            package="pyarrow",
        ),
        "lines": StockFunction(
            _FOLDER / "lines.py", ("main",), _LINES, "Select lines that contain a text"
        ),
        "edge": StockFunction(_IMAGES, ("edge",), _PIXELS, "Find the edges of a PGM or PPM image"),
        "edge-bitmap": StockFunction(
            _IMAGES, ("bitmap",), _IMAGE, "Find the edges of a PGM or PPM image, as a PBM bitmap"
        ),
        "median": StockFunction(
            _IMAGES, ("median",), _PIXELS, "Smooth a PGM or PPM image with a median filter"
        ),
        "thumbnail": StockFunction(
            _IMAGES, ("thumbnail",), _IMAGE, "Reduce a PGM or PPM image to a thumbnail"
        ),
    }
)
"""The functions by name."""
