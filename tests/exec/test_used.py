# SPDX-License-Identifier: GPL-2.0-or-later
"""The objects that a job has used (docs/jobs-internals.md, Objects used): what it read in which
version, what it changed, and what cannot be known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import pyosd
import pyosd.aio
from pyosd.errors import Conflict
from pyosd.functions.stages import FunctionStage, encode
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobFlag, JobState
from pyosd.wire.used import Used, UsedKind, UsedObject
from tests.exec.conftest import WAIT_S
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

Submit = Callable[..., Job]
MIB = 1 << 20
CAPACITY_QUOTA = 0x1_0001
MARK = AttributeValue(Page.APPLICATION, 1, b"go on")
WAITS = """
def wait_for_mark(obj):
    print("ready", flush=True)
    while not obj.getattr([(0x10000, 1)])[0][2]:
        pass
"""


@pytest.fixture
def used(submit: Submit) -> Callable[..., Used]:
    """Submit a script, wait for its end, and get the objects that it used."""

    def used(script: str, state: JobState = JobState.COMPLETED, **options: object) -> Used:
        job = submit(script, **options)
        assert job.wait(WAIT_S).state is state, job.stderr()
        return job.used()

    return used


def make(target: pyosd.Target, pid: PartitionId, data: bytes = b"") -> ObjectRef:
    obj = target.create(pid)
    if data:
        target.write(obj, 0, data)
    return obj


def version(target: pyosd.Target, obj: ObjectRef, page: int = Page.VERSION) -> bytes:
    return target.get_attribute(obj, page, 1)


def of(used: Used, obj: ObjectRef) -> UsedObject:
    (found,) = [each for each in used.objects if each.object == obj]
    return found


def script_object(obj: ObjectRef) -> str:
    return f"osd.userobject({obj.partition_id}, {obj.object_id})"


# ---- what was read ----


def test_ranges_and_version_of_what_was_read(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId
) -> None:
    obj, other = make(target, pid, b"0123456789" * 10), make(target, pid, b"unread")
    found = used(
        f"""
        import osd
        data = {script_object(obj)}.data
        for at, length in ((0, 10), (10, 5), (50, 20), (90, 100)):
            data.seek(at)
            data.read(length)
        osd.result({script_object(other)}.length())
        """
    )
    read = of(found, obj)
    assert read.kinds & ~UsedKind.WHOLE == UsedKind.DATA
    assert read.version == version(target, obj)
    assert UsedKind.WHOLE in read.kinds or read.ranges[-1][1] == 100
    length = of(found, other)
    assert (length.kinds, length.ranges) == (UsedKind.DATA, ())
    assert length.version == version(target, other)
    assert found.complete
    assert found.only(UsedKind.WROTE).objects == ()


def test_calls_give_exact_ranges(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId
) -> None:
    obj = make(target, pid, bytes(1000))
    found = used(
        f"""
        import _osdcore
        room = bytearray(100)
        for at, length in ((0, 10), (10, 5), (50, 20), (990, 100)):
            _osdcore.readinto({pid}, {obj.object_id}, at, memoryview(room)[:length])
        """
    )
    assert of(found, obj).ranges == ((0, 15), (50, 70), (990, 1000))
    many = used(
        f"""
        import _osdcore
        room = bytearray(1)
        for at in range(0, 130, 2):
            _osdcore.readinto({pid}, {obj.object_id}, at, room)
        """
    )
    assert (of(many, obj).kinds, of(many, obj).ranges) == (UsedKind.DATA | UsedKind.WHOLE, ())


@pytest.mark.parametrize("above", [False, True])
def test_reads_through_descriptors(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId, above: bool
) -> None:
    """Also of objects that stages stand above, but do not concern."""
    if above:
        target.set_attributes(ref(pid), encode(ObjectType.PARTITION, [FunctionStage(None)]))
    obj = make(target, pid, bytes(MIB))
    found = used(f"import osd\nosd.result(len({script_object(obj)}.data.read()))")
    assert of(found, obj).kinds == UsedKind.DATA | UsedKind.WHOLE
    assert of(found, obj).version == version(target, obj)


@pytest.mark.parametrize("size", [10, MIB], ids=["by calls", "through descriptors"])
def test_data_that_others_change_meanwhile(
    submit: Submit, target: pyosd.Target, pid: PartitionId, size: int
) -> None:
    obj, mark = make(target, pid, bytes(size)), make(target, pid)
    before = version(target, obj)
    job = submit(
        WAITS
        + f"""
import osd
obj = {script_object(obj)}
one = obj.data.read()
wait_for_mark({script_object(mark)})
two = obj.data.read()
osd.result(one != two)
"""
    )
    next(job.iter_output(follow=True))
    target.write(obj, 0, b"changed")
    target.set_attributes(mark, [MARK])
    assert job.result(WAIT_S) is True
    found = of(job.inputs(), obj)
    assert UsedKind.DATA | UsedKind.VARIED in found.kinds
    assert found.version == before != version(target, obj)


def test_what_has_no_version(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId
) -> None:
    obj, collection = make(target, pid), target.create_collection(pid)
    target.add_member(collection, obj)
    absent = ref(pid, 0x7654321)
    found = used(
        f"""
        import osd
        zone = osd.partition({pid})
        list(zone)
        list(osd.collection({pid}, {collection.object_id}))
        {script_object(obj)}.getattr([(0x10000, 1)])
        {script_object(absent)}.exists()
        try:
            {script_object(absent)}.data.read()
        except osd.NotFound:
            pass
        """
    )
    kinds = {each.object: each.kinds for each in found.objects}
    assert UsedKind.CONTENTS in kinds[ref(pid)]
    assert UsedKind.ATTRIBUTES in kinds[obj]
    assert UsedKind.MEMBERS in kinds[collection]
    assert of(found, collection).version == version(target, collection, Page.MEMBERS_VERSION)
    assert kinds[absent] & (UsedKind.TYPE | UsedKind.REFUSED) == UsedKind.TYPE | UsedKind.REFUSED


# ---- what was changed ----


def test_outputs(used: Callable[..., Used], target: pyosd.Target, pid: PartitionId) -> None:
    changed, gone, named = make(target, pid, b"before"), make(target, pid), make(target, pid)
    before = version(target, changed)
    found = used(
        f"""
        import osd
        obj = {script_object(changed)}
        obj.data.write(b"1")
        obj.clear(1, 1)
        obj.punch(0, 1)
        {script_object(gone)}.remove()
        {script_object(named)}.setattr([(0x10000, 1, b"x")])
        made = osd.userobject({pid}).create()
        made.data.write(b"new")
        osd.collection({pid}).create().remove()
        osd.result(made.object_id)
        """
    )
    wrote = of(found, changed)
    assert UsedKind.WROTE in wrote.kinds
    assert UsedKind.VARIED not in wrote.kinds
    assert (wrote.before, wrote.after) == (before, version(target, changed))
    kinds = {each.object: each.kinds for each in found.objects}
    assert UsedKind.REMOVED in kinds[gone]
    assert UsedKind.SET_ATTRIBUTES in kinds[named]
    made = [each for each in found.objects if UsedKind.CREATED in each.kinds]
    assert len(made) == 2
    new = of(found, made[0].object)
    assert new.after == version(target, new.object)
    assert target.read_range(new.object) == b"new"


def test_truncated_and_appended(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId
) -> None:
    obj = make(target, pid, b"0123456789")
    for change in ("truncate(3)", "truncate(100)", "append(b'x')"):
        before = version(target, obj)
        call = {"append(b'x')": f"_osdcore.call(34, {pid}, {obj.object_id}, 0, 0, b'x')"}.get(
            change, f"_osdcore.call(35, {pid}, {obj.object_id}, {change[9:-1]}, 0, b'')"
        )
        found = of(used(f"import _osdcore\n{call}"), obj)
        assert (found.before, found.after) == (before, version(target, obj))


# ---- bounds and ends ----


def test_too_many_objects(
    used: Callable[..., Used], target: pyosd.Target, pid: PartitionId
) -> None:
    """A script makes up ids: the list is as long as it may be, and says that more were used."""
    found = used(
        f"""
        import _osdcore
        for n in range(17000):
            _osdcore.call(16, {pid}, 0x900000 + n, 0, 0, b"")
        """,
        limits=pyosd.Limits(wall=50.0),
    )
    assert len(found.objects) == 16384
    assert found.left_out == 17000 - 16384
    assert not found.complete


def test_ends_of_other_kinds(submit: Submit, target: pyosd.Target, pid: PartitionId) -> None:
    obj = make(target, pid, b"data")
    read = f"import osd\n{script_object(obj)}.data.read()\n"
    failed = submit(read + "raise ValueError")
    assert failed.wait(WAIT_S).state is JobState.FAILED
    assert of(failed.used(), obj).version == version(target, obj)
    killed = submit(read + "print('up', flush=True)\nwhile True: pass")
    next(killed.iter_output(follow=True))
    with pytest.raises(Conflict, match="not ended"):
        killed.used()
    killed.kill(WAIT_S)
    assert of(killed.used(), obj).version == version(target, obj)
    nothing = submit("pass")
    nothing.wait(WAIT_S)
    assert nothing.used() == Used()
    held = submit(read, hold=True)
    held.cancel()
    with pytest.raises(Conflict, match="not kept"):
        held.used()


def test_members_of_an_array(target: pyosd.Target, pid: PartitionId, zone: ObjectRef) -> None:
    objects = [make(target, pid, b"data") for _ in range(3)]
    ids = [each.object_id for each in objects]
    script = f"import osd\nosd.userobject({pid}, {ids}[osd.array_index]).data.read()"
    array = target.exec(script, zone=zone, array=range(3))
    assert isinstance(array, JobArray)
    array.wait(WAIT_S)
    for index, obj in enumerate(objects):
        assert [each.object for each in array.member(index).inputs().objects] == [obj]
    with pytest.raises(Conflict, match="members"):
        array.used()


def test_the_list_goes_with_the_record(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        obj = make(target, pid, b"data")
        job = target.exec(f"import osd\n{script_object(obj)}.data.read()", zone=ref(pid))
        job.wait(WAIT_S)
        charged = target.get_attribute(ref(pid), Page.CHARGED, 4)
        assert of(job.used(), obj)
        assert int.from_bytes(charged, "big") >= 1024 + 16
        job.remove()
        assert target.get_attribute(ref(pid), Page.CHARGED, 4) == bytes(8)
        with pytest.raises(pyosd.errors.JobExpired):
            target.job(job.id).used()


def test_no_room_for_the_list(submit: Submit, target: pyosd.Target, pid: PartitionId) -> None:
    """The job ends as it would; its list is not kept."""
    quota = (256 << 10).to_bytes(8, "big")
    target.set_attributes(ref(pid), [AttributeValue(Page.PARTITION_QUOTAS, CAPACITY_QUOTA, quota)])
    for objects, listed in ((10, True), (16000, False)):
        script = f"""
            import _osdcore, osd
            for n in range({objects}):
                _osdcore.call(16, {pid}, 0x900000 + n, 0, 0, b"")
            osd.result(b"done")
            """
        job = submit(script, limits=pyosd.Limits(wall=50.0), surrogate=ref(pid))
        assert job.result(WAIT_S) == b"done"
        assert (JobFlag.LISTED in job.status().flags) is listed


def test_a_crash_before_the_end_leaves_no_list(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        obj = make(target, pid, b"data")
        read = f"import osd\n{script_object(obj)}.data.read()\n"
        ended = target.exec(read, zone=ref(pid))
        ended.wait(WAIT_S)
        write = f"{script_object(obj)}.data.write(b'x')\nprint('up', flush=True)\nwhile True: pass"
        running = target.exec(read + write, zone=ref(pid))
        next(running.iter_output(follow=True))
        own_serving.kill("tgtd")
        own_serving.restarted()
    with own_serving.connect() as target:
        assert target.job(running.id).wait(WAIT_S).state is JobState.SANDBOX_LOST
        with pytest.raises(Conflict, match="not kept"):
            target.job(running.id).used()
        assert of(target.job(ended.id).used(), obj).ranges == ((0, 4),)


def test_coroutines(
    submit: Submit, target: pyosd.Target, pid: PartitionId, serving: Serving
) -> None:
    obj = make(target, pid, b"data")
    job = submit(f"import osd\n{script_object(obj)}.data.read()")
    job.wait(WAIT_S)

    async def ask() -> tuple[Used, Used]:
        async with pyosd.aio.connect(serving.url) as there:
            same = there.job(job.id)
            return await same.inputs(), await same.outputs()

    assert asyncio.run(ask()) == (job.inputs(), job.outputs())
