# SPDX-License-Identifier: GPL-2.0-or-later
"""Each stock function that data pass through, in a view of a directory: ranges, lengths and WRITEs as its
contract has them (docs/views.md).  tests/exec/test_stock.py has those of images.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

import pyosd
from pyosd.errors import JobError, OSDError
from pyosd.functions import Functions, FunctionStage, OutputSize
from pyosd.functions.stock import STOCK
from pyosd.types import ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.exec.test_stacks import CONTRACT, NO_INVERSE, refusal, whole
from tests.exec.test_stock import IMAGES, serving  # noqa: F401

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

KEY = bytes(range(16))
ROWS = 3000
TEXT = b"".join(b"line %d of %s\n" % (each, (b"ann", b"bob")[each % 2]) for each in range(ROWS))


def parquet() -> bytes:
    arrow = pytest.importorskip("pyarrow")
    made = io.BytesIO()
    table = arrow.table({"id": range(ROWS), "other": ["x"] * ROWS})
    pytest.importorskip("pyarrow.parquet").write_table(table, made)
    return made.getvalue()


def zstd() -> bytes:
    return bytes(pytest.importorskip("pyarrow").Codec("zstd").compress(TEXT, asbytes=True))


def blowfish() -> bytes:
    filler, context = PKCS7(64).padder(), Cipher(Blowfish(KEY), modes.CBC(KEY[:8])).encryptor()
    return KEY[:8] + context.update(filler.update(TEXT) + filler.finalize())


WHY = "unknown parameters: (b|colums)|needs where|as is csv|key=HEX|no column has"


@dataclass(frozen=True)
class Case:
    """What is stored, and what readers see."""

    stored: Callable[[], bytes]
    seen: bytes
    parameters: str = ""
    pool: str = ""


CASES = {
    "gzip": Case(lambda: gzip.compress(TEXT), TEXT),
    "zstd": Case(zstd, TEXT, pool="arrow"),
    "csv": Case(
        lambda: b"id,other\n" + b"".join(b"%d,x\n" % each for each in range(ROWS)),
        b"id\n" + b"".join(b"%d\n" % each for each in range(ROWS)),
        "columns=id",
    ),
    "jsonl": Case(
        lambda: b"".join(b'{"id":%d, "o":"x"}\n' % each for each in range(ROWS)),
        b"".join(b'{"id":%d}\n' % each for each in range(ROWS)),
        "fields=id",
    ),
    "lines": Case(
        lambda: TEXT,
        b"".join(each for each in TEXT.splitlines(keepends=True) if b"ann" in each),
        "contains=ann",
    ),
    "parquet": Case(
        parquet,
        b'"id"\n' + b"".join(b"%d\n" % each for each in range(ROWS)),
        "columns=id&as=csv",
        pool="arrow",
    ),
    "aes-gcm": Case(
        lambda: KEY[:12] + AESGCM(KEY).encrypt(KEY[:12], TEXT, None),
        TEXT,
        f"key={KEY.hex()}",
        pool="crypt",
    ),
    "blowfish": Case(blowfish, TEXT, f"key={KEY.hex()}", pool="crypt"),
}


def test_all_are_here() -> None:
    assert {name for name, each in STOCK.items() if each.contract} == {*CASES, *IMAGES}


def known_length(target: pyosd.Target, obj: ObjectRef) -> int | None:
    value = target.get_attribute(obj, *LOGICAL_LENGTH)
    return int.from_bytes(value) if value else None


@pytest.mark.parametrize("name", CASES)
def test_in_a_view(target: pyosd.Target, functions: Functions, zone: ObjectRef, name: str) -> None:
    case, contract = CASES[name], STOCK[name].contract
    assert contract is not None
    folder = target.make_directory(zone, "folder").object
    source = target.put_name(zone, "folder/file", case.stored()).object
    stage = FunctionStage(functions.put_stock(name, pool=case.pool).id, parameters=case.parameters)
    view = functions.view_create(folder, [stage], writable=True)
    path, obj = f"/{view.id:#x}/file", target.lookup(ref(view.id), "file").object
    seen = case.seen

    def read_as(seen: bytes) -> None:
        exact = contract.size is not OutputSize.UNKNOWN
        assert known_length(target, obj) == (len(seen) if exact else None)
        for at, length in ((0, 9), (len(seen) // 2, 4096), (len(seen) - 7, 7), (len(seen) - 7, 50)):
            assert bytes(target.read(obj, at, length)) == seen[at : at + length]
        assert bytes(target.read(obj, len(seen), 5)) == b""
        assert target.fs.info(path).length == len(seen)
        assert whole(target, obj) == seen

    read_as(seen)
    if contract.inverse:
        target.write(obj, 5, b"FIVE")
        target.write(obj, len(seen), b"more")
        read_as(seen[:5] + b"FIVE" + seen[9:] + b"more")
        assert b"FIVE" not in whole(target, source)
    else:
        with pytest.raises(OSDError) as caught:
            target.write(obj, 0, b"x")
        assert refusal(caught) == (CONTRACT, NO_INVERSE)
        assert whole(target, source) == case.stored()


@pytest.mark.parametrize("name", CASES)
def test_parameters_that_are_none(functions: Functions, name: str) -> None:
    """A misspelt one does not show readers more than they should see."""
    case = CASES[name]
    functions.put_stock(name, pool=case.pool)
    wrong = ["colums=a", f"{case.parameters}&b"]
    wrong += ["columns=", "where=&is="] if name == "csv" else []
    wrong += ["is=a"] if name in ("csv", "jsonl", "parquet") else []
    wrong += ["as=xml"] if name == "parquet" else []
    for parameters in wrong:
        with pytest.raises(JobError) as caught:
            functions.call(name, case.stored(), parameters=parameters)
        assert KEY.hex() not in str(caught.value)
        assert re.search(WHY, str(caught.value))


def test_csv_of_spreadsheets(functions: Functions) -> None:
    """It begins with a byte order mark.  A row that lacks fields is a failure only if they are selected."""
    functions.put_stock("csv")
    data = b"\xef\xbb\xbfid,name\r\n1,ann\r\n2\r\n"
    assert functions.call("csv", data, parameters="columns=id") == b"id\n1\n2\n"
    assert functions.call("csv", data, parameters="where=id&is=1") == b"id,name\n1,ann\n"
    with pytest.raises(JobError) as caught:
        functions.call("csv", data, parameters="")
    assert "fewer fields" in str(caught.value)
