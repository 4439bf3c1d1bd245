# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions under capabilities: calls, turns and reports of several users, and who may replace one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyosd import requests as rq
from pyosd.errors import OSDError, PermissionDenied, ScriptError
from pyosd.functions import (
    Contract,
    Functions,
    FunctionStage,
    Hook,
    HookEvent,
    OutputSize,
    RecordForm,
)
from pyosd.security.credentials import Credential, KeySource, denied
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import Need, Permission, SecurityMethod
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.exec_params import (
    ArgsEncoding,
    CallRecord,
    ExecParams,
    FunctionCall,
)
from pyosd.wire.reply import PendingReply
from tests.exec.conftest import WAIT_S
from tests.exec.test_rights import ALICE, BOB, BUSY, EXCEPTION, METHOD, Keyed, NoCreate
from tests.serving import arguments, shared
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture(scope="module")
def keyed() -> Iterator[Keyed]:
    with shared(*arguments(["--slots", "2"])) as served:
        found = Keyed(served)
        yield found
        found.plain.close()


# The pauses are the load: twelve calls take 2.4 s if they wait for one another.  While four of them take
# their time even a busy machine accepts a call.
SLOW = """
import osd, time
NUMBER = {number}

def main(args):
    time.sleep(0.2)
    return bytes(osd.stage(args).data)

def check(args):
    time.sleep(0.2)

def quick(args):
    return NUMBER
"""


@pytest.mark.parametrize("changes", [False, True], ids=["reads", "changes"])
def test_functions_of_a_client_are_one_in_the_queue(keyed: Keyed, changes: bool) -> None:
    """Somebody who reads or changes data through many functions has one turn, as others have; each function
    had its own.  The wait is counted in commands of the other user."""
    with keyed.served.connect() as plain, keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        partition = plain.create_partition(0x16)
        table, requests = Functions(plain, partition), []
        mine = Functions(alice, partition)
        for number in range(12):
            code = SLOW.format(number=number).encode()
            made = table.put(
                code,
                name=f"slow{number}",
                methods=("main", "check", "quick"),
                contract=Contract(OutputSize.SAME, deterministic=False),
            )
            obj = alice.create_and_write(keyed.pid, b"text")
            if changes:
                mine.hook(obj, Hook(made.id, HookEvent.SET, method="check"))
                lists = AttributeLists(set=(AttributeValue(Page.APPLICATION, 1, b"x"),))
                requests.append(rq.set_attributes(obj, attributes=lists))
            else:
                mine.attach(obj, [FunctionStage(made.id)])
                requests.append(rq.read(obj, 0, 4))
        done: list[bool] = []

        def follow(pending: PendingReply) -> None:
            done.append(pending.reply(WAIT_S).error is None)

        def goes_between() -> bool:
            done.clear()
            with ThreadPoolExecutor(len(requests)) as threads:
                waiting = [bob.submit(request) for request in requests]
                ends = [threads.submit(follow, each) for each in waiting]
                before = len(done)
                assert mine.call("slow0", zone=ref(keyed.pid), method="quick") == 0
                after = len(done)
                for end in ends:
                    end.result(WAIT_S)
            assert done == [True] * len(requests)
            return after - before < 8

        # More than once: all may end before a busy machine lets this test send its call, or look.
        until(goes_between, "more than those that ran, and those that ended meanwhile")
        for request in requests:
            alice.remove(ref(request.partition_id, request.object_id))
        plain.remove_partition(partition, contents=True)


SPY = """
import osd

def main(args):
    raise ValueError(bytes(osd.stage(args).data))

def check(args):
    raise ValueError(bytes(osd.change(args).data))
"""
SECRET = b"of alice alone"


@pytest.mark.parametrize("changes", [False, True], ids=["read", "change"])
def test_the_report_of_a_function_is_for_the_user_whose_data_it_saw(
    keyed: Keyed, changes: bool
) -> None:
    """An optional function fails, and nobody notices: whoever has written it must not get the data."""
    with keyed.served.connect() as plain:
        partition = keyed.functions
        with keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
            made = Functions(plain, partition).put(
                SPY,
                name="spy",
                methods=("main", "check"),
                contract=Contract(OutputSize.SAME, optional=True),
            )
            obj = alice.create_and_write(keyed.pid, SECRET)
            mine = Functions(alice, partition)
            if changes:
                mine.hook(obj, Hook(made.id, HookEvent.WRITE, method="check"))
                with pytest.raises(OSDError):
                    alice.write(obj, 0, SECRET)
                mine.unhook(obj)
            else:
                mine.attach(obj, [FunctionStage(made.id)])
                assert bytes(alice.read(obj, 0, len(SECRET))) == SECRET
            for reader in (bob, plain):
                seen = Functions(reader, partition).calls(made).failure
                assert seen is not None and seen.reason == EXCEPTION
                assert SECRET.decode() not in seen.report and "whose data" in seen.report
            own = mine.calls(made).failure
            assert own is not None and SECRET.decode() in own.report
            with pytest.raises(ScriptError):
                mine.call("spy", "plainly", zone=ref(keyed.pid))
            plainly = Functions(bob, partition).calls(made).failure
            assert plainly is not None and "Error" in plainly.report
            alice.remove(obj)
            Functions(plain, partition).remove(made)


MIB = 1 << 20
PART = 4 * MIB
# All READs below come before the first has ended, unless the test is stopped meanwhile.
LINE_OF_PART = "import time\ndef main(args):\n    time.sleep(0.15)\n    return b'x\\n'"


def test_slow_functions_leave_memory_for_others(keyed: Keyed) -> None:
    """Each of these READs needs 20 MiB until its functions have ended, and all may have 256 MiB.  What one
    user may not have is refused, and another user finds room."""
    with keyed.served.connect() as plain, keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        partition = plain.create_partition(0x16)
        lines = Contract(OutputSize.UNKNOWN, deterministic=True, records=RecordForm.LINES)
        made = Functions(plain, partition).put(LINE_OF_PART, name="slow", contract=lines)
        bob.read(alice.create_and_write(keyed.pid, b"text"), 0, 4)  # the unit attention comes here

        def filled() -> bool:
            objs = [alice.create(keyed.pid) for _ in range(14)]
            for obj in objs:
                for end in (*range(PART, 4 * PART + 1, PART), 4 * PART + MIB):
                    alice.write(obj, end - 1, b"\n")
                Functions(alice, partition).attach(obj, [FunctionStage(made.id)])
            waiting = [bob.submit(rq.read(obj, 0, 4)) for obj in objs[1:]]
            full = waiting[-1].reply(WAIT_S).response.status == BUSY
            mine = alice.submit(rq.read(objs[0], 0, 4)).reply(WAIT_S)
            assert mine.error is None and bytes(mine.data) == b"x\nx\n"
            refused = [each.reply(WAIT_S).response.status for each in waiting[:-1]].count(BUSY)
            assert refused < len(waiting) - 1
            for obj in objs:
                alice.remove(obj)
            return full

        until(filled, "the first READ ends before the last one comes")
        plain.remove_partition(partition, contents=True)


def test_a_reader_does_not_wait_for_the_turn_of_another(keyed: Keyed) -> None:
    """Two users need the same result, which is kept, and one of them has many calls in front of it."""
    with keyed.served.connect() as plain, keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        partition = plain.create_partition(0x16)
        kept = Contract(OutputSize.SAME, deterministic=True)
        code = SLOW.format(number=0).encode()
        made = Functions(plain, partition).put(code, name="slow", contract=kept)
        ends: list[int] = []

        def follow(pending: PendingReply) -> None:
            assert pending.reply(WAIT_S).error is None
            ends.append(1)

        def goes_before() -> bool:
            ends.clear()
            objs = [alice.create_and_write(keyed.pid, b"text") for _ in range(16)]
            for obj in objs:
                Functions(alice, partition).attach(obj, [FunctionStage(made.id)])
            waiting = [bob.submit(rq.read(obj, 0, 4)) for obj in objs]
            with ThreadPoolExecutor(len(waiting)) as threads:
                followed = [threads.submit(follow, each) for each in waiting]
                until(lambda: len(ends) > 0)
                before = len(ends)
                assert bytes(alice.read(objs[-1], 0, 4)) == b"text"
                after = len(ends)
                for each in followed:
                    each.result(WAIT_S)
            for obj in objs:
                alice.remove(obj)
            return after - before < 8

        until(goes_before, "more than those that ran, and those that ended meanwhile")
        plain.remove_partition(partition, contents=True)


ECHO = "def main(args):\n    return args\n"
ROOT_NAME = AttributeId(Page.ROOT_INFORMATION, 9)


@pytest.mark.parametrize("record", [CallRecord.IF_NEEDED, CallRecord.NEVER])
def test_a_call_in_one_object_does_not_reach_the_root(keyed: Keyed, record: CallRecord) -> None:
    """By the attributes that come along with it; the capability names no object but the zone."""
    made = Functions(keyed.plain, keyed.functions).put(ECHO, name="echo")
    before = keyed.plain.get_attributes(ROOT, [ROOT_NAME])
    ids = made.id.partition_id, made.id.object_id
    named = FunctionCall(*ids, "", ArgsEncoding.JSON, record)
    with keyed.connect() as alice:
        for lists in (
            AttributeLists(set=(AttributeValue(*ROOT_NAME, b"taken"),)),
            AttributeLists((AttributeId(Page.ROOT_SECURITY, METHOD),), (), 512),
        ):
            request = rq.execute_function(
                keyed.obj, b"0", ExecParams(function=named), attributes=lists
            )
            reply = alice.submit(request).reply(WAIT_S)
            assert not any(each.value for each in reply.attributes)
            if record is CallRecord.NEVER:
                assert reply.error is not None and reply.error.field_pointer == 48
    assert keyed.plain.get_attributes(ROOT, [ROOT_NAME]) == before
    Functions(keyed.plain, keyed.functions).remove(made)


class Single(KeySource):
    """The source returns credentials for one object each, as rules for single objects give them."""

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        if object_type is ObjectType.USER_OBJECT and not obj.object_id:
            raise denied(Need(obj, object_type, permissions))
        return super().credential(obj, object_type, permissions)


def test_an_alias_is_taken_with_the_permissions_for_both_functions(keyed: Keyed) -> None:
    """Whoever replaces a function ends it, so a credential for the new one alone is not enough."""
    with keyed.served.connect() as plain:
        partition = plain.create_partition(0x16)
        keyed.keys.add(partition)
        table = Functions(plain, partition)
        first = table.put("def main(args): return 1", name="count")
        second = table.put("def main(args): return 2", name="count", activate=False)
        third = table.put("def main(args): return 3", name="other", activate=False)
        table.activate(first.id)
        method = AttributeValue(Page.PARTITION_SECURITY, METHOD, bytes((SecurityMethod.CAPKEY,)))
        plain.set_attributes(ref(partition), [method])
    with keyed.connect(Single(keyed.keys.working, keyed.system_id, audit=BOB)) as bob:
        with pytest.raises(PermissionDenied):
            bob.activate_function(second.id, replace=True)
        bob.activate_function(third.id, replace=True)
    with keyed.connect() as alice:
        table = Functions(alice, partition)
        assert table.show(first.id).active and not table.show(second.id).active
        assert table.call("count", zone=ref(keyed.pid)) == 1
        table.activate(second.id)
        assert not table.show(first.id).active
        assert table.call("count", zone=ref(keyed.pid)) == 2
        table.put("def main(args): return 4", name="count")
        assert table.call("count", zone=ref(keyed.pid)) == 4


@pytest.mark.parametrize("oid", [0, 0x9_0000])
def test_a_surrogate_of_a_call_among_the_data_needs_create(keyed: Keyed, oid: int) -> None:
    made = Functions(keyed.plain, keyed.functions).put(ECHO, name="echo")
    ids = made.id.partition_id, made.id.object_id
    named = FunctionCall(*ids, "", ArgsEncoding.JSON, CallRecord.ALWAYS)
    params = ExecParams(function=named, rights=Permission.READ, surrogate=ref(keyed.pid, oid))
    limited = NoCreate(keyed.keys.working, keyed.system_id, audit=ALICE)
    with keyed.connect(limited) as target, pytest.raises(OSDError) as refused:
        target.call_function(ref(keyed.pid), b"0", params)
    assert refused.value.field_pointer == 48
    with keyed.connect() as target:
        done = target.call_function(ref(keyed.pid), b"0", params)
        assert done.job is not None and done.job.partition_id == keyed.pid
        target.job(done.job).remove()
    Functions(keyed.plain, keyed.functions).remove(made)
