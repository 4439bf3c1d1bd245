# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts may rely on in package osd.  Run as a job in a sandbox, and as a program at a client:
test_osd_package.py does both.  Prints one line for each check; the lines are compared, too.
"""

import array
import bz2
import csv
import gzip
import hashlib
import io
import json
import pickle
import re
import shutil
import struct
import zipfile

import osd

PID = 0x10000
checks = []


def check(function):
    checks.append(function)
    return function


def raises(kind, function, *args):
    try:
        function(*args)
    except kind as error:
        assert str(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def fresh(content=b""):
    u = osd.userobject(PID).create()
    if content:
        u.data.write(content)
    return u


@check
def existence():
    p = osd.partition(PID + 5)
    assert not p.exists()
    raises(osd.NotFound, p.get)
    p.create()
    assert p.exists() and p.get() is p
    raises(osd.Exists, p.create)
    u = osd.userobject(PID + 5, 0x10000)
    assert not u.exists()
    raises(osd.NotFound, u.length)
    raises(osd.NotFound, u.remove)
    u.create()
    raises(osd.Exists, u.create)
    assert u.exists() and not osd.collection(PID + 5, 0x10000).exists()
    raises(osd.NotEmpty, p.remove)
    u.remove()
    assert not u.exists()
    p.remove()
    assert not p.exists()
    raises(osd.NotFound, p.remove)
    assert osd.root().exists()
    raises(osd.Invalid, osd.partition, PID, 7)


@check
def ids_of_the_target_s_choice():
    p = osd.partition().create()
    assert p.partition_id > PID and p.exists()
    many = p.create_many(7)
    assert [u.object_id for u in many] == list(range(many[0].object_id, many[0].object_id + 7))
    assert list(p) == list(p.userobjects()) == many
    assert p in list(osd.root())
    p.remove(contents=True)
    assert p not in list(osd.root())


@check
def collections():
    c = osd.collection(PID).create()
    assert c.exists() and c in list(osd.partition(PID).collections())
    members = [fresh() for _ in range(5)]
    for u in members:
        c.add(u)
    assert list(c) == list(c.members()) == members
    c.drop(members[0])
    raises(osd.NotFound, c.drop, members[0])
    c.drop(members[1].object_id)
    assert list(c) == members[2:]
    raises(osd.NotEmpty, c.remove)
    raises(osd.NotFound, c.add, 0x7FFFFFFF)
    c.remove(with_members=True)
    assert not c.exists() and members[3].exists()


@check
def attributes():
    u = fresh()
    assert u.getattr([(10, 3)]) == [(10, 3, b"")]
    u.setattr([(10, 3, "text é"), (11, 3, 0xDEADBEEF), (12, 1, b"\0\1"), (12, 2, bytearray(9))])
    values = u.getattr([(12, 1), (10, 3), (11, 3), (99, 1), (12, 2)])
    assert [v[:2] for v in values] == [(12, 1), (10, 3), (11, 3), (99, 1), (12, 2)]
    raw, text, number, absent, nine = (v[2] for v in values)
    assert text.text == "text é" and text == "text é".encode()
    assert number.int == 0xDEADBEEF and len(number) == 8
    assert raw == b"\0\1" and raw.int == 1 and absent == b"" and nine == bytes(9)
    assert isinstance(raw, bytes) and repr(raw) == "b'\\x00\\x01'"
    u.setattr([(10, 3, b"")])
    assert [a[:2] for a in u.attributes() if a[0] in (10, 11, 12)] == [(11, 3), (12, 1), (12, 2)]
    assert [a[1] for a in u.attributes(12)] == [1, 2]
    raises(osd.Invalid, u.setattr, [(10, 1, -1)])
    raises(osd.Invalid, u.setattr, [(10, 1, 1 << 64)])
    raises(osd.Invalid, u.setattr, [(10, 1, bytes(70000))])
    many = [(13, n, n) for n in range(1, 151)]
    u.setattr(many)
    assert [v.int for _, _, v in u.getattr([(13, n) for n in range(1, 151)])] == list(range(1, 151))
    u.remove()
    raises(osd.NotFound, u.getattr, [(10, 3)])


@check
def queries():
    p = osd.partition().create()
    age, tint = osd.attr(10, 1), osd.attr(10, 2)
    made = p.create_many(12)
    for n, u in enumerate(made):
        u.setattr([(10, 1, n), (10, 2, "red" if n % 3 == 0 else "blue")])
    made[11].setattr([(10, 1, b"")])

    def found(condition=None, where=p):
        return [made.index(u) for u in where.query(condition)]

    p.index(10)
    assert list(p.indexes()) == [10]
    assert found() == list(range(12))
    assert found(age >= 5) == [5, 6, 7, 8, 9, 10] == found(age > 4)
    assert found((age >= 3) & (age <= 6)) == [3, 4, 5, 6] == found((age > 2) & (age < 7))
    assert found(tint == "red") == [0, 3, 6, 9] == found(tint > b"blue")
    assert found((tint == "red") & (age >= 4)) == [6, 9]
    assert found((age == 1) | (age == 8) | (age == 1)) == [1, 8]
    assert found(((tint == "red") & (age <= 3)) | (age == 10) | (age == 0)) == [0, 3, 10]
    assert found(age.defined()) == list(range(11)) and found(age != 4) == [
        0,
        1,
        2,
        3,
        *range(5, 11),
    ]
    assert found((age >= 5) & (age <= 4)) == [] == found(age < 0) == found(osd.attr(99, 1) >= 0)
    c = osd.collection(p.partition_id).create()
    for u in made[2:9:2]:
        c.add(u)
    assert found(None, c) == [2, 4, 6, 8] and found(age >= 5, c) == [6, 8]
    assert list(osd.query(age == 7))[-1:] == [made[7]] == list(osd.root().query(age == 7))[-1:]
    walk = p.query(age >= 0)
    assert next(walk) == made[0]
    other = p.query(age >= 0)
    assert (
        [next(other), next(walk)] == made[:2] and [*walk] == made[2:11] and [*other] == made[1:11]
    )
    raises(osd.NotFound, list, osd.collection(p.partition_id, 0x7FFFFFFF).query())
    raises(osd.Invalid, lambda: age < "red")
    raises(TypeError, lambda: 1 <= age <= 5)
    p.index(10, keep=False)
    assert p.indexes() == {}
    p.remove(contents=True)


@check
def atomics():
    u = fresh()
    assert [u.fetch_and_add(10, 1), u.fetch_and_add(10, 1, 5), u.fetch_and_add(10, 1, -2)] == [
        0,
        1,
        6,
    ]
    assert u.getattr([(10, 1)])[0][2].int == 4
    u.setattr([(10, 1, (1 << 64) - 1)])
    assert u.fetch_and_add(10, 1, 2) == (1 << 64) - 1 and u.fetch_and_add(10, 1, 0) == 1
    assert u.compare_and_swap(10, 2, "", "first") and not u.compare_and_swap(10, 2, "", "second")
    assert u.compare_and_swap(10, 2, "first", 7) and not u.compare_and_swap(10, 2, b"\7", 8)
    assert u.getattr([(10, 2)])[0][2].int == 7
    assert u.compare_and_swap(10, 2, 7, b"") and u.getattr([(10, 2)])[0][2] == b""
    u.setattr([(10, 3, "text")])
    raises(osd.Invalid, u.fetch_and_add, 10, 3)
    long = bytes(range(250)) * 200
    assert u.compare_and_swap(10, 4, "", long) and u.compare_and_swap(10, 4, long, long[::-1])
    assert u.getattr([(10, 4)])[0][2] == long[::-1]
    u.remove()
    raises(osd.NotFound, u.fetch_and_add, 10, 1)
    raises(osd.NotFound, u.compare_and_swap, 10, 1, "", 1)


@check
def grep():
    u = fresh(b"one fish\ntwo fish\n\nred Fish\nblue")
    assert list(u.grep("fish")) == [(0, b"one fish"), (9, b"two fish")]
    assert [line for _, line in u.grep("FISH", ignore_case=True)] == [
        b"one fish",
        b"two fish",
        b"red Fish",
    ]
    assert list(u.grep("^$")) == [(18, b"")] and list(u.grep(rb"e$")) == [(28, b"blue")]
    assert list(u.grep("[^x]+d")) == [(19, b"red Fish")] and list(u.grep("two.*")) == [
        (9, b"two fish")
    ]
    assert list(u.grep("fish(?!.)")) == [(0, b"one fish"), (9, b"two fish")]
    assert next(u.grep(re.compile("RED", re.I))).offset == 19
    assert list(u.grep(".*", literal=True)) == [] and len(list(u.grep(".*"))) == 5
    assert list(u.find("fish\n")) == [(4, b"fish\n"), (13, b"fish\n")]
    assert list(u.find("h.t", ignore_case=True)) == [] != list(u.find("(?s)h.t"))
    assert list(fresh().grep("x*")) == [] and list(fresh().find("x")) == []
    raises(osd.Invalid, u.grep, "(")
    raises(osd.NotFound, list, osd.userobject(PID, 0x7FFFFFFF).grep("x"))


@check
def grep_across_borders():
    size = (1 << 20) + 300
    u = fresh()
    f = u.data
    for at in (size - 3, 2 * size - 7, 4 * size):
        f.seek(at)
        f.write("needle\n")
    f.seek((1 << 20) - 4)
    f.write(b"\nedge here\n")
    places = [size - 3, 2 * size - 7, 4 * size]
    assert [offset for offset, _ in u.find("needle")] == places
    assert [offset for offset, _ in u.find(r"(?<=\0)needle$")] == places
    assert [line for _, line in u.grep("edge")] == [b"edge here"]
    assert [len(line) > 6 for _, line in u.grep("needle")] == [True] * 3
    rows = b"".join(b"row %06d\n" % n for n in range(110_000))
    u = fresh(rows)
    assert [line for _, line in u.grep("row .*07777$")] == [b"row 007777", b"row 107777"]
    assert sum(1 for _ in u.grep("row")) == sum(1 for _ in u.find("row")) == 110_000
    assert [offset // 11 for offset, _ in u.grep(r"00000\Z")] == [0, 100_000]


@check
def lines():
    u = fresh()
    f = u.data
    assert f.write("Hello World\n") == 12 and f.write(b"second\nlast") == 11
    assert f.tell() == 23 and u.length() == 23 == len(u.data)
    assert list(u.data) == [b"Hello World\n", b"second\n", b"last"]
    f = u.data
    assert f.readline() == b"Hello World\n" and f.tell() == 12
    assert next(f) == b"second\n" and f.read() == b"last" and f.read() == b"" == f.readline()
    assert u.data.readlines() == [b"Hello World\n", b"second\n", b"last"]
    for line in u.data:
        assert line == b"Hello World\n"
        break


@check
def positions():
    u = fresh(b"0123456789")
    f = u.data
    assert f.seek(3) == 3 and f.read(2) == b"34" and f.seek(-2, 1) == 3 and f.read(1) == b"3"
    assert f.seek(-1, 2) == 9 and f.read() == b"9"
    raises(ValueError, f.seek, -1)
    f.seek(2)
    assert f.read(1) == b"2"
    f.write(b"xy")  # where reading had come to, not where the buffer had
    assert u.data.read() == b"012xy56789" and f.read(1) == b"5"
    f.seek(20)
    f.write("end")
    assert u.data.read() == b"012xy56789" + bytes(10) + b"end"
    buffer = bytearray(4)
    f.seek(0)
    assert f.readinto(buffer) == 4 and buffer == b"012x" and f.peek(1)[:1] == b"y"
    assert f.readable() and f.writable() and f.seekable() and not f.isatty()
    f.close()
    raises(ValueError, f.read, 1)
    raises(ValueError, f.write, b"")


@check
def changing_lengths():
    u = fresh(b"0123456789")
    u.data.truncate(4)
    assert u.data.read() == b"0123"
    u.data.truncate(6)
    assert u.data.read() == b"0123\0\0"
    f = u.data
    f.seek(2)
    f.truncate()
    assert u.length() == 2
    assert u.data.append("ab") == 2 and u.data.append(b"cd") == 4
    u.clear(1, 2)
    assert u.data.read() == b"0\0\0bcd"
    u.punch(1, 2)
    assert u.data.read() == b"0bcd"
    u.flush()
    raises(osd.Invalid, u.data.truncate, -1)


@check
def large():
    block = bytes(range(256)) * 4096
    u = fresh()
    f = u.data
    for _ in range(5):
        f.write(block)
    assert f.write(block * 2 + b"tail") == 2 * len(block) + 4
    whole = block * 7 + b"tail"
    assert f.tell() == len(whole)
    assert u.length() == len(whole)
    assert u.data.read() == whole
    f = u.data
    pieces = []
    while piece := f.read(1 << 20):
        pieces.append(piece)
    assert b"".join(pieces) == whole
    buffer = bytearray(3 << 20)
    f = u.data
    f.seek(len(whole) - (2 << 20))
    assert f.readinto(buffer) == 2 << 20 and buffer[: 2 << 20] == whole[-(2 << 20) :]
    buffer = bytearray(b"-") * (33 << 20)  # from 32 MiB on huge pages are asked for
    assert u.data.readinto(buffer) == len(whole)
    assert buffer.startswith(whole + b"-") and buffer.count(b"-", len(whole)) == len(buffer) - len(
        whole
    )
    f.seek(100)
    f.write(b"changed")
    assert u.data.read(110)[100:107] == b"changed" and u.data.read(2 << 20)[100:107] == b"changed"


@check
def mapping():
    content = b"needle in a haystack " * 20000
    u = fresh(content)
    view = u.data.map()
    assert len(view) == len(content) and bytes(memoryview(view)[:6]) == b"needle"
    assert len(re.findall(b"needle", view)) == 20000
    assert memoryview(view).readonly and view.changed() is False
    assert view[:6] == b"needle" == bytes(view[21:27]) and view[0] == view[-21] == ord("n")
    assert type(view[3:9]) is bytes and view[len(content) - 1 :] == b" "
    raises(IndexError, view.__getitem__, len(content))
    assert len(fresh().data.map()) == 0


@check
def as_a_file():
    u = fresh()
    with io.TextIOWrapper(u.data, encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([["a", "é"], [1, 2]])
    assert list(csv.reader(io.TextIOWrapper(u.data, encoding="utf-8"))) == [["a", "é"], ["1", "2"]]
    u = fresh(json.dumps({"k": [1, 2]}).encode())
    assert json.load(u.data) == {"k": [1, 2]}
    u = fresh()
    with gzip.GzipFile(fileobj=u.data, mode="wb") as packed:
        packed.write(b"line\n" * 10000)
    assert u.length() < 1000
    assert sum(1 for _ in gzip.GzipFile(fileobj=u.data)) == 10000


@check
def file_formats():
    rows = [{"name": "é", "n": str(n)} for n in range(300)]
    u = fresh()
    with io.TextIOWrapper(u.data, encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, ["name", "n"])
        writer.writeheader()
        writer.writerows(rows)
    assert list(csv.DictReader(io.TextIOWrapper(u.data, encoding="utf-8", newline=""))) == rows
    u = fresh()
    with io.TextIOWrapper(u.data, encoding="utf-8") as text:
        json.dump(rows, text)
    assert json.load(u.data) == rows == json.loads(u.data.read())
    u = fresh()
    pickle.dump(rows, u.data, protocol=5)
    assert pickle.load(u.data) == rows
    big = bytes(range(256)) * 1500
    u = fresh()
    with zipfile.ZipFile(u.data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("big", big)
        packed.writestr("small", "text")
    with zipfile.ZipFile(u.data, "a") as packed:
        packed.writestr("later", b"more")
    with zipfile.ZipFile(u.data) as packed:
        assert packed.testzip() is None and packed.namelist() == ["big", "small", "later"]
        assert packed.read("big") == big and packed.open("later").read(2) == b"mo"
    u = fresh()
    with gzip.GzipFile(fileobj=u.data, mode="wb", mtime=0) as packed:
        shutil.copyfileobj(io.BytesIO(big), packed)
    with gzip.open(u.data, "rb") as unpacked:
        unpacked.seek(300_000)
        assert unpacked.read(1000) == big[300_000:301_000]
        unpacked.seek(5)
        assert unpacked.read(3) == big[5:8]
    u = fresh(bz2.compress(big[:20_000]))
    assert bz2.BZ2File(u.data).read() == big[:20_000]
    u = fresh(big)
    assert hashlib.file_digest(u.data, "sha256").digest() == hashlib.sha256(big).digest()
    copy = fresh()
    shutil.copyfileobj(u.data, copy.data)
    assert copy.data.read() == big
    u = fresh()
    u.data.write(array.array("I", range(1000)))
    numbers = array.array("I", bytes(4000))
    assert u.data.readinto(numbers) == 4000 and list(numbers) == list(range(1000))
    assert [n for (n,) in struct.iter_unpack("I", u.data.map())] == list(range(1000))
    assert memoryview(u.data.map()).cast("I")[999] == 999


@check
def blocks():
    content = bytes(range(256)) * 10_000
    u = fresh(content)
    found = list(u.data.blocks())
    assert [len(each) for each in found] == [1 << 20, 1 << 20, len(content) - (2 << 20)]
    assert all(type(each) is memoryview for each in found) and b"".join(found) == content
    f = u.data
    assert f.readline() == content[:11]
    for n, block in enumerate(f.blocks(1000)):
        assert block == content[11 + 2000 * n :][:1000]
        f.seek(1000, 1)
        if n == 5:
            break
    assert list(fresh().data.blocks()) == []
    raises(osd.Invalid, u.data.blocks, 0)


@check
def bad_arguments():
    u = fresh(b"0123456789")
    f = u.data
    for bad in (-1, 1 << 64):
        raises(osd.Invalid, osd.userobject, PID, bad)
        raises(osd.Invalid, osd.partition, bad)
        raises(osd.Invalid, osd.collection, bad, 0)
        raises(osd.Invalid, u.clear, bad, 1)
        raises(osd.Invalid, u.clear, 0, bad)
        raises(osd.Invalid, u.punch, bad, 1)
        raises(osd.Invalid, f.truncate, bad)
        raises(osd.Invalid, f.seek, bad)
        raises(osd.Invalid, osd.partition(PID).create_many, bad)
        raises(osd.Invalid, list, u.attributes(bad))
        raises(osd.Invalid, osd.collection(PID, 0x10000).add, bad)
    for bad in (-1, 1 << 32):
        raises(osd.Invalid, u.getattr, [(bad, 1)])
        raises(osd.Invalid, u.getattr, [(10, bad)])
        raises(osd.Invalid, u.setattr, [(bad, 1, 1)])
        raises(osd.Invalid, u.fetch_and_add, 10, bad)
        raises(osd.Invalid, u.compare_and_swap, bad, 1, "", 1)
    raises(osd.Invalid, osd.partition(PID).create_many, 0)
    raises(osd.Invalid, f.seek, 1 << 63)
    f.seek((1 << 63) - 1)
    assert f.read(10) == b"" == f.read() and f.tell() == (1 << 63) - 1
    raises(osd.OSDError, f.write, b"xx")
    f.seek(0)
    raises(osd.Invalid, u.clear, 1 << 62, 1 << 62)
    raises(osd.Invalid, u.getattr, [(10, 0xFFFFFFFF)])
    raises(osd.Invalid, u.getattr, [(0xFFFFFFFF, 1)])
    raises(osd.Invalid, list, osd.partition(PID).query(osd.attr(10, 1) == "x" * 40_000))
    condition = osd.attr(10, 0) == 1
    for n in range(1, 65):
        condition &= osd.attr(10, n) == 1
    raises(osd.Invalid, list, osd.partition(PID).query(condition))
    c = osd.userobject(PID, osd.collection(PID).create().object_id)
    for what in (c.length, c.data.read, c.flush, c.remove, lambda: c.data.read(5)):
        raises(osd.NotFound, what)
    raises(osd.NotFound, c.data.write, b"x")
    u.setattr([(11, n, bytes([n]) * 60_000) for n in range(1, 40)])
    assert [len(value) for _, _, value in u.getattr([(11, n) for n in range(41)])][1:] == [
        *[60_000] * 39,
        0,
    ]
    raises(osd.Invalid, f.seek, 0, 7)
    raises(osd.Invalid, osd.attr, 0x30000000, 1)
    raises(osd.Invalid, osd.progress, float("nan"))
    raises(TypeError, f.write, 5)
    raises(TypeError, osd.userobject, PID, "7")
    raises(TypeError, osd.result, object())
    raises(osd.Invalid, osd.collection(PID, 0x10000).add, osd.userobject(PID + 1, 0x10000))
    assert f.read() == b"0123456789"
    assert not fresh().data.read() and fresh().data
    for closed in (f.read, f.readline, f.tell, f.flush, f.truncate, f.peek):
        f.close()
        if closed != f.tell:
            raises(ValueError, closed)
    raises(ValueError, f.seek, 0)
    raises(ValueError, f.readinto, bytearray(3))


@check
def shared_positions():
    u = fresh(b"".join(b"line %03d\n" % n for n in range(100)))
    f = u.data
    assert f.readline() == b"line 000\n" and f.read(4) == b"line" and f.tell() == 13
    buffer = bytearray(300 << 10)
    assert f.readinto(buffer) == 887 and f.read(1 << 20) == b"" == f.read(7)
    f.seek(-9, 2)
    assert f.read(100) == b"line 099\n" and f.readlines() == []
    f.seek(0)
    assert [*f][-1] == b"line 099\n" and f.tell() == 900
    f.append(b"more\n")
    assert f.tell() == 900 and f.readline() == b"more\n"
    f.seek(2)
    f.truncate()
    assert f.tell() == 2 and f.read() == b"" and u.length() == 2
    u = fresh(bytes(range(256)) * 2000)
    f = u.data
    parts = []
    while part := f.read(7000):
        parts.append(part)
        if len(parts) % 9 == 0:
            parts += [f.readline(), f.read(1), f.read1(5), f.read(70), f.read(1)]
            if len(parts) > 50:
                parts.append(next(iter(f)))
        assert f.tell() == sum(map(len, parts))
    assert b"".join(parts) == bytes(range(256)) * 2000
    u.data.truncate(2)
    u.data.write("li")
    with u.data as g:
        assert g.readable() and g.read1() == b"li" and not g.closed
    assert g.closed and f.seek(0) == 0 and f.read(1) == b"l"


@check
def reports():
    osd.progress(None)
    osd.progress(0.25, "a quarter")
    raises(osd.Invalid, osd.progress, 2)
    osd.result({"checks": len(checks)})


@check
def names():
    assert repr(osd.userobject(1 << 16, 7)) == "osd.userobject(0x10000, 0x7)"
    assert {osd.partition(3), osd.partition(3, 0)} == {osd.partition(3)}
    assert osd.userobject(3, 4) != osd.collection(3, 4)
    assert osd.args == ["one", "two"] and osd.zone == osd.root()
    assert issubclass(osd.PermissionDenied, PermissionError) and issubclass(
        osd.NotFound, LookupError
    )
    assert not issubclass(osd.Ended, Exception)


osd.partition(PID).create()
for function in checks:
    function()
    print(function.__name__, "ok")
osd.partition(PID).remove(contents=True)
