# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of any length through functions that take records (docs/views.md)."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyosd
from pyosd import requests as rq
from pyosd.cli import main
from pyosd.errors import OSDError
from pyosd.files import Entry, get, pieces
from pyosd.functions import (
    Contract,
    Functions,
    FunctionStage,
    KeptResults,
    OutputSize,
    RecordForm,
)
from pyosd.types import ObjectRef, TaskManagement, ref
from pyosd.wire.job_status import JobState
from tests.command.test_perform import COMPLETE, manage
from tests.exec.conftest import WAIT_S, Run
from tests.exec.test_kept import begun
from tests.exec.test_stacks import CONTRACT, STAGE, TOO_LARGE, put, refusal, whole
from tests.expect import BUSY, TASK_ABORTED
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

RECORD_TOO_LONG, NOT_KEPT = 8, 9
MIB = 1 << 20
PART = 4 * MIB
LINES = Contract(OutputSize.UNKNOWN, deterministic=True, records=RecordForm.LINES)
UPPER = """
import time, osd

def main(args):  # upper case; each call is told in a line of its own if asked for
    stage = osd.stage(args)
    time.sleep(float(stage.options.get("sleep", "0")))
    if stage.offset >= int(stage.options.get("fails", 1 << 40)):
        raise ValueError("as asked for")
    told = b"%d %d\\n" % (stage.offset, stage.whole) if "tell" in stage.options else b""
    return told + stage.data.upper() * int(stage.options.get("times", "1"))
"""
FLIP = """
import osd

def main(args):
    return osd.stage(args).data.translate(bytes(255 - each for each in range(256)))
"""
TOTAL = """
import osd

def main(args):
    return b"%d lines\\n" % osd.stage(args).data.count(b"\\n")
"""


def lines_of(size: int, seed: int = 1) -> bytes:
    """Lines of very different lengths, the last one without an end."""
    draw = random.Random(seed)
    made = bytearray()
    while len(made) < size:
        many = 200_000 if draw.random() < 0.005 else 1000
        made += b"%d,%s,%s\n" % (
            len(made),
            draw.choice((b"ann", b"bob", b"eve")),
            b"x" * draw.randrange(many),
        )
    return bytes(made) + b"the end of bob"


TEXT = lines_of(21 * MIB)
CASES = itertools.count()


def write(target: pyosd.Target, obj: ObjectRef, data: bytes) -> None:
    for at in range(0, len(data), MIB):
        target.write(obj, at, data[at : at + MIB])


@pytest.fixture(scope="module")
def text_zone(serving: Serving) -> Iterator[ObjectRef]:
    """A partition with one object, TEXT."""
    with serving.connect() as target:
        made = target.create_partition()
        write(target, target.create(made), TEXT)
        yield ref(made)
        target.remove_partition(made, contents=True)


@pytest.fixture
def text(target: pyosd.Target, text_zone: ObjectRef, functions: Functions) -> Iterator[ObjectRef]:
    (found,) = target.list_objects(text_zone.partition_id)
    yield found
    functions.detach(found)


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create(zone.partition_id)


def having(text: bytes, word: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(True) if word in line)


# ---- what is read ----


def test_lines_of_a_long_object(
    target: pyosd.Target, functions: Functions, text: ObjectRef
) -> None:
    before = functions.results()
    lines = functions.put_stock("lines").id
    functions.attach(text, [FunctionStage(lines, parameters="contains=bob")])
    wanted = having(TEXT, b"bob")
    assert bytes(target.read(text, 5 * MIB, 100)) == wanted[5 * MIB :][:100]
    assert whole(target, text) == wanted
    draw = random.Random(2)
    for _ in range(50):
        at, count = draw.randrange(len(wanted)), draw.randrange(1, 300_000)
        assert bytes(target.read(text, at, count)) == wanted[at : at + count]
    assert target.read_pieces(text, [(7, 4), (len(wanted) - 9, 20)]) == wanted[7:11] + wanted[-9:]
    with pytest.raises(OSDError) as caught:
        target.read(text, len(wanted) + 1, 1)
    assert caught.value.sense is not None and caught.value.sense.field_pointer == 40
    after = functions.results()
    assert after.computed == before.computed + 1 and after.failed == before.failed


def test_clients_that_ask_for_all(
    serving: Serving,
    target: pyosd.Target,
    functions: Functions,
    obj: ObjectRef,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They do not know the length, and find all data: names, files, copies."""
    write(target, obj, TEXT)
    functions.attach(obj, [FunctionStage(put(functions, UPPER, LINES))])
    wanted = TEXT.upper()
    assert target.known_length(obj) is None
    assert target.read_range(obj) == wanted
    assert b"".join(pieces(target, obj, MIB, None)) == wanted[MIB:]
    get(target, Entry(obj, "", 0), tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == wanted
    path = f"/{obj.partition_id:#x}/text"
    target.link(ref(obj.partition_id), "text", obj)
    assert target.fs.info(path).length == len(wanted)
    monkeypatch.setenv("IOSD_TARGET", serving.url)
    for words in (
        (f"osd:{path}", tmp_path / "copied"),
        ("-r", f"osd:{path[:-5]}", tmp_path / "all"),
    ):
        done = CliRunner().invoke(main, ["cp", *map(str, words)])
        assert done.exit_code == 0, done.output
    for copied in ("copied", "all/text"):
        assert (tmp_path / copied).read_bytes() == wanted
    with target.fs.open(path, "rb") as file:
        file.seek(-3, io.SEEK_END)
        assert file.read() == wanted[-3:]
        assert target.fs.read_bytes(path, MIB, 9) == wanted[MIB : MIB + 9]


def test_the_first_read_may_be_of_any_range(
    target: pyosd.Target, functions: Functions, text: ObjectRef
) -> None:
    upper, wanted = put(functions, UPPER, LINES), TEXT.upper()
    for number, at in enumerate((0, PART - 3, len(TEXT) - 5, len(TEXT))):
        functions.attach(text, [FunctionStage(upper, parameters=f"case={number}")])
        assert bytes(target.read(text, at, 10)) == wanted[at : at + 10]
    functions.attach(text, [FunctionStage(upper, parameters="case=beyond")])
    with pytest.raises(OSDError) as caught:
        target.read(text, len(TEXT) + 1, 1)
    assert caught.value.sense is not None and caught.value.sense.field_pointer == 40


def test_parts(target: pyosd.Target, functions: Functions, text: ObjectRef) -> None:
    """Each begins with a line, and has 4 MiB at most."""
    functions.attach(text, [FunctionStage(put(functions, UPPER, LINES), parameters="tell=1")])
    at, read = 0, whole(target, text)
    while at < len(TEXT):
        assert read.startswith(b"%d %d\n" % (at, len(TEXT)))
        end = TEXT.rindex(b"\n", at, at + PART) + 1 if len(TEXT) - at > PART else len(TEXT)
        read = read.partition(b"\n")[2]
        assert read[: end - at] == TEXT[at:end].upper()
        read, at = read[end - at :], end
    assert read == b""


def test_stages_of_all_kinds(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    """Blocks, then lines, then a function that makes more, then one that needs everything at once."""
    flip = put(functions, FLIP, Contract(OutputSize.SAME, block=1000, deterministic=True))
    lines = functions.put_stock("lines").id
    upper = put(functions, UPPER, LINES, name="upper")
    total = put(functions, TOTAL, Contract(OutputSize.UNKNOWN, deterministic=True), name="total")
    selected = having(TEXT, b"bob,")
    zipped = functions.put_stock("gzip").id
    write(target, obj, bytes(TEXT).translate(bytes(255 - each for each in range(256))))
    stages = [
        FunctionStage(flip),
        FunctionStage(lines, parameters="contains=bob,"),
        FunctionStage(upper, parameters="times=3"),
    ]
    functions.attach(obj, stages)
    found = whole(target, obj)
    assert len(found) == 3 * len(selected)
    assert sorted(found.splitlines()) == sorted(selected.upper().splitlines() * 3)
    small = FunctionStage(lines, parameters="contains=77")
    functions.attach(obj, [*stages, small, FunctionStage(total)])
    assert whole(target, obj) == b"%d lines\n" % having(found, b"77").count(b"\n")
    functions.attach(obj, [*stages, FunctionStage(lines, parameters="contains=none")])
    assert whole(target, obj) == b""
    functions.attach(obj, [*stages[:2], FunctionStage(zipped, "compress")])
    assert gzip.decompress(whole(target, obj)) == selected


def test_a_table(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    """The header counts for all parts, in each stage the one that it gets."""
    draw = random.Random(3)
    text = 'say "hi", '
    rows = [[str(at), draw.choice("abc"), text * draw.randrange(60)] for at in range(60_000)]
    made = io.StringIO(newline="")
    writer = csv.writer(made, lineterminator="\n")
    writer.writerows([["id", "class", "text"], *rows])
    data = made.getvalue().encode()
    assert len(data) > 17 * MIB
    write(target, obj, data)
    table = functions.put_stock("csv").id
    stages = [
        FunctionStage(table, parameters="columns=text,class,id&where=class&is=b"),
        FunctionStage(table, parameters="columns=id,text"),
    ]
    functions.attach(obj, stages)
    read = list(csv.reader(io.StringIO(whole(target, obj).decode(), newline="")))
    assert read == [["id", "text"], *([row[0], row[2]] for row in rows if row[1] == "b")]
    functions.detach(obj)
    target.write(obj, data.index(b"\n", PART - 4000), b'"')
    functions.attach(obj, stages)
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 1)
    assert refusal(caught)[0] == STAGE, "a row lies between two parts"


def test_through_a_view(target: pyosd.Target, functions: Functions, text: ObjectRef) -> None:
    lines = functions.put_stock("lines").id
    names = [FunctionStage(lines, parameters=f"contains={word}") for word in ("bob", "7")]
    first = functions.view_create(text.partition_id, names[:1])
    second = functions.view_create(first.id, names[1:])
    shown = ref(second.id, text.object_id)
    wanted = having(having(TEXT, b"bob"), b"7")
    assert whole(target, shown) == wanted
    origin = functions.origin(shown)
    assert origin is not None and origin.source == text and len(origin.stages) == 2
    for each in (second, first):
        functions.view_remove(each.id)


# ---- refusals ----


def test_a_script_reads_them(
    target: pyosd.Target, functions: Functions, text: ObjectRef, run: Run
) -> None:
    """Also if its READ is the one that has the parts computed."""
    upper = put(functions, UPPER, LINES)
    functions.attach(text, [FunctionStage(upper)])
    script = "import hashlib, osd; osd.result(hashlib.sha256(osd.zone.data.read()).hexdigest())"
    status = run(script, zone=text)
    assert status.state is JobState.COMPLETED, status.message
    wanted = hashlib.sha256(TEXT.upper()).hexdigest()
    assert target.job(status.id).result() == wanted
    functions.attach(text, [FunctionStage(upper, parameters="fails=1")])
    status = run(script, zone=text)
    assert status.state is JobState.FAILED
    assert "a function that its data pass through failed" in status.message


def test_a_record_that_is_too_long(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    write(target, obj, b"x\n" * MIB * 6 + b"y" * PART + b"\n" + b"z\n" * 3 * MIB)
    stages = [FunctionStage(put(functions, UPPER, LINES))]
    functions.attach(obj, stages)
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 1)
    assert refusal(caught) == (CONTRACT, RECORD_TOO_LONG)
    functions.detach(obj)
    target.write(obj, 12 * MIB + PART // 2, b"\n")
    functions.attach(obj, stages)
    assert bytes(target.read(obj, 12 * MIB + PART - 1, 3)) == b"Y\nZ"


def test_a_stage_that_needs_everything_at_once(
    target: pyosd.Target, functions: Functions, text: ObjectRef
) -> None:
    upper = put(functions, UPPER, LINES)
    total = put(functions, TOTAL, Contract(OutputSize.UNKNOWN, deterministic=True), name="total")
    functions.attach(text, [FunctionStage(upper), FunctionStage(total)])
    with pytest.raises(OSDError) as caught:
        target.read(text, 0, 1)
    assert refusal(caught) == (CONTRACT, TOO_LARGE)


def test_a_result_that_is_not_kept(
    target: pyosd.Target, functions: Functions, text: ObjectRef
) -> None:
    other = Contract(OutputSize.UNKNOWN, records=RecordForm.LINES)
    functions.attach(text, [FunctionStage(put(functions, UPPER, other))])
    with pytest.raises(OSDError) as caught:
        target.read(text, 0, 1)
    assert refusal(caught) == (CONTRACT, NOT_KEPT)


@pytest.mark.parametrize("quota", ["0", "8MiB"])
def test_a_result_longer_than_the_quota(quota: str) -> None:
    """It is computed once to find that out, and not again."""
    with (
        Serving("--isolation", "best", "--slots", "1", "--kept-results", quota) as served,
        served.connect() as target,
    ):
        functions = Functions(target)
        upper = functions.put(UPPER, name="upper", contract=LINES).id
        lines = functions.put_stock("lines").id
        obj = target.create(target.create_partition())
        write(target, obj, TEXT)
        functions.attach(obj, [FunctionStage(upper)])
        for _ in range(3):
            with pytest.raises(OSDError) as caught:
                target.read(obj, 0, 1)
            assert refusal(caught) == (CONTRACT, NOT_KEPT)
        assert functions.results().kept == 0
        calls = functions.calls("upper").plain
        assert (calls > 0) == (quota != "0") and calls <= 3
        if quota != "0":
            functions.attach(obj, [FunctionStage(lines, parameters="contains=77")])
            assert whole(target, obj) == having(TEXT, b"77")


# ---- failures and changes meanwhile ----


def test_a_failure_in_a_later_part(
    target: pyosd.Target, functions: Functions, text: ObjectRef
) -> None:
    """Also of an optional function: what it makes must be the same for all READs."""
    optional = Contract(
        OutputSize.UNKNOWN, deterministic=True, optional=True, records=RecordForm.LINES
    )
    for contract in (LINES, optional):
        failing = put(functions, UPPER, contract)
        functions.attach(text, [FunctionStage(failing, parameters=f"fails={2 * PART}")])
        with pytest.raises(OSDError) as caught:
            target.read(text, 0, 1)
        assert refusal(caught) == (STAGE, 201)


@pytest.fixture
def slow(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> ObjectRef:
    """TEXT, each part of which takes a while: changes and other readers come before the last one."""
    write(target, obj, TEXT)
    upper = put(functions, UPPER, LINES, name="upper")
    functions.attach(obj, [FunctionStage(upper, parameters="sleep=0.4")])
    return obj


def attach_anew(functions: Functions, slow: ObjectRef) -> None:
    """Have a stage without a kept result."""
    parameters = f"sleep=0.4&case={next(CASES)}"
    functions.attach(slow, [FunctionStage(functions.show("upper").id, parameters=parameters)])


def parts_done(functions: Functions) -> int:
    return functions.calls("upper").plain


def part_done(functions: Functions, count: int) -> None:
    """Wait until so many parts have passed."""
    until(lambda: parts_done(functions) >= count, pause=0.01)


def test_a_change_meanwhile(
    serving: Serving, target: pyosd.Target, functions: Functions, slow: ObjectRef
) -> None:
    """All bytes are of one version, the later one."""
    stages = functions.attached(slow)
    functions.detach(slow)
    view = functions.view_create(slow.partition_id, stages)
    shown = ref(view.id, slow.object_id)
    other, starts = lines_of(17 * MIB, seed=5), (0, 5 * MIB)
    data = (other + TEXT[len(other) :]).upper()

    def changed_in_time(reader: pyosd.Target) -> bool:
        write(target, slow, TEXT)
        passed = parts_done(functions)
        reads = [reader.submit(rq.read(shown, at, 99)) for at in starts]
        part_done(functions, passed + 2)
        write(target, slow, other)
        passed = parts_done(functions)
        seen = [bytes(each.reply(WAIT_S).data) for each in reads]
        if parts_done(functions) == passed:
            return False  # both READs had ended
        assert seen == [data[at : at + 99] for at in starts]
        return True

    with serving.connect() as reader:
        begun(reader)
        until(lambda: changed_in_time(reader), "the READs end before the change")
    functions.view_remove(view.id)


def test_other_functions_meanwhile(serving: Serving, functions: Functions, slow: ObjectRef) -> None:
    def detached_in_time(reader: pyosd.Target) -> bool:
        attach_anew(functions, slow)
        passed = parts_done(functions)
        read = reader.submit(rq.read(slow, 0, 9))
        part_done(functions, passed + 1)
        functions.detach(slow)
        passed = parts_done(functions)
        busy = read.reply(WAIT_S).response.status == BUSY
        assert busy or parts_done(functions) == passed, "it had not ended"
        return busy

    with serving.connect() as reader:
        begun(reader)
        until(lambda: detached_in_time(reader), "the READ ends before the change")


def test_readers_at_once_compute_once(
    target: pyosd.Target, functions: Functions, slow: ObjectRef
) -> None:
    before = functions.results()
    with ThreadPoolExecutor(16) as threads:
        seen = threads.map(lambda at: bytes(target.read(slow, at * MIB, 99)), range(16))
        assert list(seen) == [TEXT[at * MIB :][:99].upper() for at in range(16)]
    assert functions.results().computed == before.computed + 1


def test_the_reader_that_computes_is_aborted(
    serving: Serving, functions: Functions, slow: ObjectRef
) -> None:
    def found(results: KeptResults) -> int:
        """READs that waited for another one, or came after its end."""
        return results.shared + results.hits

    def aborted_in_time(first: pyosd.Target, second: pyosd.Target) -> bool:
        attach_anew(functions, slow)
        before, passed = functions.results(), parts_done(functions)
        leader = first.submit(rq.read(slow, 0, 8))
        part_done(functions, passed + 1)
        others = [second.submit(rq.read(slow, 0, 8)) for _ in range(3)]
        until(lambda: found(functions.results()) >= found(before) + 3, pause=0)
        assert manage(first, TaskManagement.ABORT_TASK_SET) == COMPLETE
        aborted = leader.reply(WAIT_S).response.status == TASK_ABORTED
        assert {bytes(each.reply(WAIT_S).data) for each in others} == {TEXT[:8].upper()}
        assert functions.results().computed == before.computed + 1
        return aborted

    with serving.connect() as first, serving.connect() as second:
        begun(first, second)
        until(lambda: aborted_in_time(first, second), "the READ ends before it is aborted")
