# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that come with iosd, and the image functions of the kit (docs/views.md, docs/hooks.md)."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

import pyosd
from iosd_host.common.paths import wasmtime_library
from pyosd.errors import OSDError
from pyosd.functions import (
    Contract,
    Functions,
    FunctionStage,
    Hook,
    HookEvent,
    OutputSize,
    RecordForm,
)
from pyosd.functions.stock import STOCK
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.exec.signing import UNSIGNED, MakeKey, Serve
from tests.exec.test_followers import PAGE, number, settled
from tests.exec.test_stacks import STAGE, refusal, whole
from tests.machine import unavailable
from tests.package_sets import CRYPTOGRAPHY, PYARROW, SETS, from_registry
from tests.serving import Serving, sandboxes_missing, shared
from tests.wasm_kit import kit_module

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

RECORDS = [
    {"id": 1, "who": {"name": "ann", "age": 7}, "text": "ä"},
    {"id": 2, "who": {"name": "bob", "age": None}, "ok": True},
    {"id": 3, "who": "nobody", "text": "x,y"},
]


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target whose pools have package sets, and one the engine wasm."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    if wasmtime_library() is None:
        unavailable("sandbox", "the Python package wasmtime is not installed")
    preload = "cryptography.hazmat.primitives.ciphers.aead"
    from_registry("cryptography", CRYPTOGRAPHY, preload)
    from_registry("pyarrow", PYARROW, "pyarrow.parquet", "pyarrow.csv", "pyarrow.compute")
    words = ("--isolation", "best", "--slots", "1", "--package-sets", str(SETS))
    pools = (
        "crypt:packages=cryptography,max=1",
        "arrow:packages=pyarrow,max=1",
        "w:engine=wasm,max=1",
    )
    with shared(*words, *(word for each in pools for word in ("--pool", each))) as served:
        yield served


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create(zone.partition_id)


def seen(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, data: bytes, *stages: FunctionStage
) -> bytes:
    """The data that READs find."""
    functions.detach(obj)
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, len(data).to_bytes(8))])
    target.write(obj, 0, data)
    functions.attach(obj, stages)
    return whole(target, obj)


def test_all_are_signed(signing: Serve, key: MakeKey) -> None:
    """The statement of the client is that of the target, with all of their contracts."""
    ed = key("ed25519")
    served = signing("signed", f"ann@example.org {ed.public}")
    table = Functions(served.target, 0x11)
    with pytest.raises(OSDError) as caught:
        table.put_stock("lines")
    assert refusal(caught)[0] == UNSIGNED
    for name, each in STOCK.items():
        found = table.put_stock(name, pool="default" if each.package else "", sign_with=ed.path)
        assert (found.signer, found.manifest.contract) == ("ann@example.org", each.contract)


# ---- JSON lines, and columns of CSV ----


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("", RECORDS),
        ("fields=text,id", [{"text": "ä", "id": 1}, {"id": 2}, {"text": "x,y", "id": 3}]),
        (
            "fields=who.name,who.age",
            [{"who.name": "ann", "who.age": 7}, {"who.name": "bob", "who.age": None}, {}],
        ),
        ("where=id&is=2", RECORDS[1:2]),
        ("where=who.name&is=ann&fields=id", [{"id": 1}]),
        ("where=who.age&is=null", RECORDS[1:2]),
        ("where=ok&is=true", RECORDS[1:2]),
        ("where=text&is=x,y", RECORDS[2:]),
        ("where=none&is=", []),
    ],
)
def test_json_lines(
    target: pyosd.Target,
    functions: Functions,
    obj: ObjectRef,
    parameters: str,
    wanted: list[dict[str, object]],
) -> None:
    jsonl = functions.put_stock("jsonl").id
    data = b"\n\n".join(json.dumps(each).encode() for each in RECORDS)
    found = seen(target, functions, obj, data, FunctionStage(jsonl, parameters=parameters))
    assert [list(json.loads(line).items()) for line in found.splitlines()] == [
        list(each.items()) for each in wanted
    ]


def test_a_line_that_is_no_json(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    with pytest.raises(OSDError) as caught:
        seen(target, functions, obj, b"{}\n{\n", FunctionStage(functions.put_stock("jsonl").id))
    assert refusal(caught) == (STAGE, 201)


def test_the_schema_of_a_table(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    schema = functions.put_stock("schema").id
    functions.hook(zone, Hook(schema, HookEvent.AFTER, page=PAGE))
    text = 'id,price,name,none\n7,1.5,ann,\n-3,2e1,"b,\nob",\n12,,1_0,\n'
    obj = target.create_and_write(zone.partition_id, text.encode())
    found = settled(target, functions, obj)
    assert (number(found, 2), number(found, 3)) == (3, 4)
    assert json.loads(found[4]) == [
        {"name": "id", "type": "integer", "min": -3, "max": 12, "empty": 0},
        {"name": "price", "type": "number", "min": 1.5, "max": 20.0, "empty": 1},
        {"name": "name", "type": "text", "min": "1_0", "max": "b,\nob", "empty": 0},
        {"name": "none", "type": "empty", "min": None, "max": None, "empty": 3},
    ]
    wide = ",".join("ü" * 60 for _ in range(120)) + "\n" + ",".join(["ß" * 99] * 120) + "\n"
    target.write(obj, 0, wide.encode())
    found = settled(target, functions, obj)
    assert number(found, 3) == 120 and len(json.loads(found[4])) == 100


# ---- ciphers, with a package set ----


@pytest.mark.parametrize("name", ["aes-gcm", "blowfish"])
def test_ciphers(target: pyosd.Target, functions: Functions, obj: ObjectRef, name: str) -> None:
    """What others have encrypted is read, and what is written others can decrypt."""
    key, text, before = bytes(range(32)), b"a secret" * 1000 + b"!", functions.results().kept
    made = functions.put_stock(name, pool="crypt").id
    stages = [FunctionStage(made, parameters=f"key={key.hex()}")]

    def decrypted(stored: bytes) -> bytes:
        if name == "aes-gcm":
            return AESGCM(key).decrypt(stored[:12], stored[12:], None)
        context = Cipher(Blowfish(key), modes.CBC(stored[:8])).decryptor()
        filler = PKCS7(64).unpadder()
        return filler.update(context.update(stored[8:])) + filler.finalize()

    functions.attach(obj, stages)
    target.write(obj, 0, text)
    assert whole(target, obj) == text
    target.write(obj, 3, b"SECRET")
    changed = text[:3] + b"SECRET" + text[9:]
    assert bytes(target.read(obj, 2, 8)) == changed[2:10]
    functions.detach(obj)
    stored = whole(target, obj)
    assert b"secret" not in stored and decrypted(stored) == changed
    assert functions.results().kept == before, "the disk never has the text"
    functions.attach(obj, [FunctionStage(made, parameters=f"key={bytes(16).hex()}")])
    with pytest.raises(OSDError) as caught:
        whole(target, obj)
    assert refusal(caught) == (STAGE, 201), "another key"


def test_bytes_that_were_changed(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    made = functions.put_stock("aes-gcm", pool="crypt").id
    stages = [FunctionStage(made, parameters=f"key={bytes(16).hex()}")]
    functions.attach(obj, stages)
    target.write(obj, 0, b"text")
    functions.detach(obj)
    target.write(obj, 14, bytes((target.read(obj, 14, 1)[0] ^ 1,)))
    functions.attach(obj, stages)
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 1)
    assert refusal(caught) == (STAGE, 201)


def test_a_function_that_needs_a_package(functions: Functions) -> None:
    for name, each in STOCK.items():
        if each.package:
            with pytest.raises(ValueError, match=each.package):
                functions.put_stock(name)
        else:
            functions.put_stock(name)
    with pytest.raises(ValueError, match="no function"):
        functions.put_stock("unheard")


# ---- Parquet ----


def test_parquet(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = range(50_000)
    table = arrow.table({"id": rows, "name": [f"n{each % 7}" for each in rows], "other": rows})
    made = io.BytesIO()
    parquet.write_table(table, made, row_group_size=10_000)
    stock = functions.put_stock("parquet", pool="arrow").id

    def read(parameters: str) -> bytes:
        return seen(
            target, functions, obj, made.getvalue(), FunctionStage(stock, parameters=parameters)
        )

    found = parquet.read_table(io.BytesIO(read("columns=name,id&where=other&is=7")))
    assert found.to_pydict() == {"name": ["n0"], "id": [7]}
    found = parquet.read_table(io.BytesIO(read("where=name&is=n3")))
    assert found.equals(table.filter([each % 7 == 3 for each in rows]))
    assert read("columns=id&where=id&is=49999&as=csv") == b'"id"\n49999\n'
    with pytest.raises(OSDError) as caught:
        read("columns=unheard")
    assert refusal(caught) == (STAGE, 201)


def test_zstd(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    arrow = pytest.importorskip("pyarrow")
    text = b"".join(b"line %d\n" % each for each in range(100_000))
    stock = functions.put_stock("zstd", pool="arrow").id
    codec, stage = arrow.Codec("zstd"), FunctionStage(stock)
    one, two = (codec.compress(half, asbytes=True) for half in (text[:700_000], text[700_000:]))
    assert seen(target, functions, obj, one + two, stage) == text, "two frames"
    target.write(obj, 0, b"LINE")
    changed = b"LINE" + text[4:]
    assert whole(target, obj) == changed
    functions.detach(obj)
    stored = whole(target, obj)
    assert len(stored) < len(text) // 2
    assert codec.decompress(stored, len(text), asbytes=True) == changed
    with pytest.raises(OSDError) as caught:
        seen(target, functions, obj, one[:-9], stage)
    assert refusal(caught) == (STAGE, 201)


# ---- those of the kit, in WebAssembly (tests/unit/test_kit_stages.py has what they compute) ----


def test_lines_in_webassembly(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, kit: Path
) -> None:
    contract = Contract(OutputSize.UNKNOWN, deterministic=True, records=RecordForm.LINES)
    made = functions.put(kit_module(kit, "lines"), contract=contract).id
    stages = FunctionStage(made, parameters="contains=ann")
    assert seen(target, functions, obj, b"ann\nbob\r\n" * 1000 + b"an ann", stages) == (
        b"ann\n" * 1000 + b"an ann"
    )
    with pytest.raises(OSDError) as caught:
        seen(target, functions, obj, b"ann\n", FunctionStage(made))
    assert refusal(caught)[0] == STAGE


def test_encrypted_blocks(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, kit: Path
) -> None:
    """Any range is read and written, and other programs can decrypt the blocks."""
    key, draw = bytes(range(16)), random.Random(3)
    contract = Contract(OutputSize.SAME, block=4096, inverse="encrypt")
    methods = ("decrypt", "encrypt")
    made = functions.put(kit_module(kit, "blowfish"), methods=methods, contract=contract).id
    functions.attach(obj, [FunctionStage(made, parameters=f"key={key.hex()}")])
    text = bytearray(draw.randbytes(10_003))
    target.write(obj, 0, text)
    for _ in range(5):
        at, new = draw.randrange(10_000), draw.randbytes(draw.randrange(6000))
        target.write(obj, at, new)
        text[at : at + len(new)] = new
        begin = draw.randrange(len(text))
        assert bytes(target.read(obj, begin, 100)) == text[begin : begin + 100]
    functions.detach(obj)
    stored = whole(target, obj)
    vector = Cipher(Blowfish(key), modes.ECB()).encryptor().update((1).to_bytes(8))
    context = Cipher(Blowfish(key), modes.CBC(vector)).decryptor()
    assert len(stored) == len(text) and context.update(stored[4096:8192]) == text[4096:8192]


# ---- images ----

Pixels = list[list[tuple[int, ...]]]


def image_of(pixels: Pixels) -> bytes:
    """In PGM or PPM."""
    kind = b"P5" if len(pixels[0][0]) == 1 else b"P6"
    flat = bytes(value for row in pixels for pixel in row for value in pixel)
    return b"%s\n%d %d\n255\n" % (kind, len(pixels[0]), len(pixels)) + flat


def around(pixels: Pixels, y: int, x: int, channel: int) -> list[int]:
    """The pixel and those beside it, row by row."""

    def inside(at: int, end: int) -> int:
        return max(0, min(at, end - 1))

    return [
        pixels[inside(y + down, len(pixels))][inside(x + right, len(pixels[0]))][channel]
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    ]


def edge(v: list[int]) -> int:
    x = v[2] + 2 * v[5] + v[8] - v[0] - 2 * v[3] - v[6]
    y = v[6] + 2 * v[7] + v[8] - v[0] - 2 * v[1] - v[2]
    return min(255, abs(x) + abs(y))


def median(v: list[int]) -> int:
    return sorted(v)[4]


@pytest.fixture
def image(functions: Functions, kit: Path) -> ObjectRef:
    return functions.put(
        kit_module(kit, "image"),
        methods=("edge", "median", "thumbnail"),
        contract=Contract(OutputSize.UNKNOWN, deterministic=True),
    ).id


def drawn(width: int, height: int, channels: int) -> Pixels:
    draw = random.Random(width * height)
    return [
        [tuple(draw.randrange(256) for _ in range(channels)) for _ in range(width)]
        for _ in range(height)
    ]


@pytest.mark.parametrize("size", [(1, 1, 1), (2, 5, 3), (40, 3, 1), (33, 21, 3)])
def test_images(
    target: pyosd.Target,
    functions: Functions,
    obj: ObjectRef,
    image: ObjectRef,
    size: tuple[int, int, int],
) -> None:
    pixels = drawn(*size)
    for name, of in (("edge", edge), ("median", median)):
        wanted: Pixels = [
            [
                tuple(of(around(pixels, y, x, each)) for each in range(len(pixel)))
                for x, pixel in enumerate(row)
            ]
            for y, row in enumerate(pixels)
        ]
        found = seen(target, functions, obj, image_of(pixels), FunctionStage(image, name))
        assert found == image_of(wanted)
    stages = FunctionStage(image, "thumbnail", "size=10")
    wanted = [
        [
            tuple(
                mean([pixels[y][x][channel] for y in ys for x in xs]) for channel in range(size[2])
            )
            for xs in spans(size[0], max(size[:2]))
        ]
        for ys in spans(size[1], max(size[:2]))
    ]
    assert seen(target, functions, obj, image_of(pixels), stages) == image_of(wanted)


def spans(side: int, longest: int) -> list[range]:
    """The pixels that each pixel of a thumbnail stands for."""
    count = side if longest <= 10 else max(1, side * 10 // longest)
    return [range(each * side // count, (each + 1) * side // count) for each in range(count)]


def mean(values: list[int]) -> int:
    return (sum(values) + len(values) // 2) // len(values)


@pytest.mark.parametrize(
    "data",
    [
        *(b"P", b"P5", b"P5 2 2 255", b"P5 2 2 255\nabc", b"P4 1 1 255\na", b"P5 0 1 255\n"),
        *(
            b"P5 1048577 1 255\n",
            b"P6 4294967297 1 255\nabc",
            b"P5 1 1 65535\nab",
            b"P5 -1 1 255\na",
        ),
    ],
)
def test_what_is_no_image(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, image: ObjectRef, data: bytes
) -> None:
    for name in ("edge", "thumbnail"):
        with pytest.raises(OSDError) as caught:
            seen(target, functions, obj, data, FunctionStage(image, name))
        assert refusal(caught)[0] == STAGE


def test_the_header_of_an_image(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, image: ObjectRef
) -> None:
    data = b"P5 # grey\n#2 3\n 2\t1 # one row\r\n255 " + b"ab"
    stages = FunctionStage(image, "thumbnail")
    assert seen(target, functions, obj, data, stages) == b"P5\n2 1\n255\nab"
