# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that come with iosd (docs/views.md, docs/hooks.md)."""

from __future__ import annotations

import io
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

import pyosd
from bench.fn_local import local
from iosd_host.common.paths import wasmtime_library
from pyosd.errors import JobError, OSDError
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
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.cli.documents import run_page
from tests.exec.signing import UNSIGNED, MakeKey, Serve
from tests.exec.test_followers import PAGE, number, settled
from tests.exec.test_stacks import CONTRACT, STAGE, TOO_LARGE, refusal, whole
from tests.harness import SOURCE
from tests.images import (
    Pixels,
    bitmap,
    drawn,
    edge,
    filtered,
    image_of,
    median,
    samples,
    thumbnail,
)
from tests.machine import unavailable
from tests.package_sets import CRYPTOGRAPHY, PYARROW, SETS, from_registry
from tests.serving import Serving, sandboxes_missing, shared
from tests.wasm_kit import kit_module, needs_compiler_of_stock

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
        ("where=&is=", []),
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
    text = '\ufeffid,price,name,none\n7,1.5,ann,\n-3,2e1,"b,\nob",\n12,,1_0,\n'
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


# ---- images: tests/unit/test_kit_stages.py has more of what they compute ----

DEADLINE_S = 120
IMAGES = ("edge", "edge-bitmap", "median", "thumbnail")


@pytest.fixture
def images(functions: Functions) -> dict[str, ObjectRef]:
    return {name: functions.put_stock(name).id for name in IMAGES}


def test_the_code_of_images_is_that_of_its_source(kit: Path) -> None:
    """The compiler of Debian 12 makes the same bytes."""
    needs_compiler_of_stock()
    module = kit_module(kit, "image")
    again = "run `make -C examples/functions stock`"
    assert STOCK["edge"].file.read_bytes() == module.read_bytes(), again


def test_views_of_a_directory_of_images(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, images: dict[str, ObjectRef]
) -> None:
    """Each is found under its name.  Filters keep the header, the length and what is behind the image."""
    grey, colours = drawn(33, 21, 1), drawn(40, 3, 3)
    header, behind = b"P5 # grey\n#33 9\n 33\t21 # small\r\n255 ", b"behind the image"
    target.make_directory(zone, "photos")
    stored = {
        "grey.pgm": target.put_name(
            zone, "photos/grey.pgm", header + samples(grey) + behind
        ).object,
        "red.ppm": target.put_name(zone, "photos/red.ppm", image_of(colours)).object,
        "notes.txt": target.put_name(zone, "photos/notes.txt", b"of the photos").object,
    }
    for name, of in (("edge", edge), ("median", median)):
        view = functions.view_create(zone.partition_id, [FunctionStage(images[name])])
        found = target.fs.ls(f"/{view.id:#x}/photos")
        assert {each.path.rpartition("/")[2] for each in found} == set(stored)
        for file, wanted in (
            ("grey.pgm", header + samples(filtered(grey, of)) + behind),
            ("red.ppm", image_of(filtered(colours, of))),
        ):
            obj = target.lookup(ref(view.id), f"photos/{file}").object
            assert target.get_attribute(obj, *LOGICAL_LENGTH) == len(wanted).to_bytes(8)
            for start, length in ((0, 8), (len(header) - 3, 50), (len(wanted) - 9, 9), (300, 60)):
                assert bytes(target.read(obj, start, length)) == wanted[start : start + length]
            assert whole(target, obj) == wanted
            with pytest.raises(OSDError):
                target.write(obj, 0, b"P6")
        notes = target.lookup(ref(view.id), "photos/notes.txt").object
        with pytest.raises(OSDError) as caught:
            target.read(notes, 0, 1)
        assert refusal(caught)[0] == STAGE
        failure = functions.calls(name).failure
        assert failure is not None and "no image in the format PGM or PPM" in failure.report
    small = FunctionStage(images["thumbnail"], parameters="size=10")
    view = functions.view_create(zone.partition_id, [FunctionStage(images["median"]), small])
    red = target.lookup(ref(view.id), "photos/red.ppm").object
    wanted = image_of(thumbnail(filtered(colours, median), 10))
    assert bytes(target.read(red, 5, 20)) == wanted[5:25]
    assert target.get_attribute(red, *LOGICAL_LENGTH) == b"", "it depends on the image"
    assert target.fs.info(f"/{view.id:#x}/photos/red.ppm").length == len(wanted)


def test_the_guide(serving: Serving, target: pyosd.Target, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"IOSD_TARGET": serving.url, "PATH": path}
    run_page(SOURCE / "docs" / "howto" / "images.md", tmp_path, environment, DEADLINE_S)
    target.remove_partition(PartitionId(1), contents=True)


def test_values_of_an_image_below_255(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, images: dict[str, ObjectRef]
) -> None:
    pixels = drawn(19, 7, 1, most=100)
    edges: Pixels = [[(min(100, each),) for (each,) in row] for row in filtered(pixels, edge)]
    data = image_of(pixels, 100)
    for name, wanted in (("edge", edges), ("thumbnail", pixels)):
        assert seen(target, functions, obj, data, FunctionStage(images[name])) == (
            image_of(wanted, 100)
        )


HOSTILE = {
    "no image": (b"P", b"P4 1 1 255\na", b"\x89PNG\r\n\x1a\n", b"P2 1 1 255\n7"),
    "wide and high": (
        *(b"P5", b"P5 0 1 255\n", b"P5 -1 1 255\na", b"P5 1048577 1 255\n"),
        *(b"P6 4294967297 1 255\nabc", b"P5 1 " + b"9" * 400 + b" 255\na", b"P5 #" + b" 1" * 99),
    ),
    "1 to 255": (b"P5 1 1 65535\nab", b"P5 1 1 0\na", b"P5 1 1 256\na"),
    "not complete": (b"P5 2 2 255", b"P5 2 2 255#"),
    "ends before": (
        *(b"P5 2 2 255\nabc", b"P5 65536 65536 255\nabc", b"P6 1048576 1048576 255\nabc"),
        *(b"P6 37838 37838 255\n", b"P5 1048576 4096 255 "),  # 2^32 bytes and a little; 2^32
    ),
}


def test_what_is_no_image(functions: Functions, images: dict[str, ObjectRef]) -> None:
    """Also products of the sides that are small again in 32 bits.  The report of the call says why."""
    for text, each in HOSTILE.items():
        for data in each:
            for name in images:
                with pytest.raises(JobError) as caught:
                    functions.call(name, data, parameters="")
                assert text in str(caught.value), (name, data)


def test_parameters_of_images(functions: Functions, images: dict[str, ObjectRef]) -> None:
    data = image_of(drawn(20, 10, 3))
    for name, parameters, text in (
        *(("thumbnail", each, "size=N, 1 to 1048576") for each in ("size=0", "size=1048577")),
        *(("thumbnail", each, "size=N") for each in ("size=", "size=7x", "width=7", "size=7&a=1")),
        *(("thumbnail", each, "size=N") for each in ("size=-1", "size=4294967303", "size")),
        *(("edge-bitmap", f"threshold={each}", "1 to 255") for each in (0, 256, "a")),
        *((each, "threshold=9", "no parameters") for each in ("edge", "median")),
    ):
        with pytest.raises(JobError) as caught:
            functions.call(name, data, parameters=parameters)
        assert text in str(caught.value), parameters


def test_calls_with_an_image(
    functions: Functions, images: dict[str, ObjectRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same functions, called with bytes of the client."""
    pixels = drawn(20, 10, 3)
    data, edges = image_of(pixels), filtered(pixels, edge)
    wanted = {
        ("edge", ""): image_of(edges),
        ("median", ""): image_of(filtered(pixels, median)),
        ("edge-bitmap", ""): bitmap(edges, 128),
        ("edge-bitmap", "threshold=255"): bitmap(edges, 255),
        ("thumbnail", ""): data,
        ("thumbnail", "size=007"): image_of(thumbnail(pixels, 7)),
        ("thumbnail", "size=1"): image_of(thumbnail(pixels, 1)),
    }
    for (name, parameters), result in wanted.items():
        assert functions.call(name, data, parameters=parameters) == result
    assert functions.call("thumbnail", data, parameters="", record=True) == data
    with pytest.raises(JobError) as caught:
        functions.call("edge", data)
    assert "otherwise than with the data of an object" in str(caught.value)
    with pytest.raises(TypeError):
        functions.call("edge", "text", parameters="")
    with pytest.raises(ValueError, match="1024"):
        functions.call("edge", data, parameters="a" * 1025)


def test_a_big_image(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, images: dict[str, ObjectRef]
) -> None:
    """The largest that a function gets, against the same code on this machine."""
    header = b"P5\n4096 4095\n255\n"
    data = header + random.Random(1).randbytes(4095) * 4096
    data += bytes((16 << 20) - len(data))
    stage = FunctionStage(images["median"])
    assert seen(target, functions, obj, data, stage) == local("image", "median")(data)
    functions.detach(obj)
    target.append(obj, b"x")
    functions.attach(obj, [stage])
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 1)
    assert refusal(caught) == (CONTRACT, TOO_LARGE)
