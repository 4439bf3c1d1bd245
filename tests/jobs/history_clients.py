# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that submit, ask about, control and remove the same jobs at once, and note each command with
its begin, its end and its answer.

A client has one session of its own and sends each command once: one whose session is lost under it has
no answer, and the client connects anew.  Not here: what the notes must fit (history.py), who kills
what meanwhile (test_history.py, tests/soak).
"""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pyosd
from pyosd.commands import Commands
from pyosd.errors import CommandTimeout, Conflict, NotFound, OSDError, TargetBusy, Unreachable
from pyosd.types import AttributeId, AttributeValue, ObjectAttributes, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag, ExecParams
from pyosd.wire.job_status import JobState, JobStatus, Number, decode_status
from tests.jobs import history
from tests.jobs.history import (
    BUSY,
    CLASHES,
    GONE,
    IN_THE_WAY,
    NO_PREDECESSOR,
    REMOVED,
    THERE,
    Asked,
    Script,
    Seen,
)
from tests.jobs.history_arrays import Member
from tests.jobs.history_lines import (
    KINDS,
    LOG,
    LONGEST_LINE,
    NO_FLAGS,
    OFTEN,
    ONCE,
    About,
    Line,
    Notebook,
    id_of,
)
from tests.linearize import Operation

JOBS_COLLECTION = 0x1001
CONTROL_BYTES = {history.CANCEL: 1, history.KILL: 2, history.HOLD: 3, history.RELEASE: 4}
WEIGHTS = {
    "again": 12,
    history.STATUS: 40,
    "list": 4,
    history.CANCEL: 8,
    history.KILL: 9,
    history.HOLD: 10,
    history.RELEASE: 10,
    history.REMOVE: 14,
}


def ids(*numbers: Number) -> tuple[AttributeId, ...]:
    return tuple(AttributeId(Page.JOB_STATUS, number) for number in numbers)


SEEN_IDS = ids(
    *(Number.GENERATION, Number.STATE, Number.REASON, Number.ATTEMPT, Number.NAME, Number.STATES)
)
AT_THE_END = (*SEEN_IDS, *ids(Number.PREDECESSOR, Number.AFTER))
INVALID_FIELD_IN_CDB, KEY_CLASH = (0x24, 0), (0x80, 0x12)
RECONNECT_S = 60.0
LOG_MOST = 1 << 20
PACE_S = 0.003
"""Mean pause between two commands: what they answer has to be judged, too."""
FAULT_S = 0.005
"""Pause after an error that a fault made."""


def seen_of(attributes: tuple[AttributeValue, ...], job: ObjectRef) -> tuple[Seen, str] | None:
    status = decode_status(job, attributes)
    if status is None:
        return None
    states = next((each.value for each in attributes if each.number == Number.STATES), b"")
    of_members = tuple(map(JobState, states))
    seen = Seen(status.state, status.generation, status.reason, status.attempt, of_members)
    return seen, status.name


def no_fault(_: OSDError) -> bool:
    return False


class Client:
    """One of those who work at once.

    fault: whether an error is a fault's doing: then the command may have happened, as one without an
    answer.
    """

    def __init__(
        self,
        number: int,
        book: Notebook,
        connect: Callable[[], pyosd.Target],
        seed: int,
        *,
        fault: Callable[[OSDError], bool] = no_fault,
    ) -> None:
        self.number, self.book, self.connect = number, book, connect
        self.fault = fault
        self.rng = random.Random(seed)
        self.session: pyosd.Target | None = None
        self.answered = self.lost = 0

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        while not stop.wait(self.rng.expovariate(1 / PACE_S)):
            self.one()
        self.close()

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    def one(self) -> None:
        """One command."""
        line = self.book.pick(self.rng)
        if line is None:
            line = self.book.new_line()
            self.submit(line)
            self.book.opened(line)
            return
        name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if name == "list":
            self.look_at_all()
        elif name == "again" or not line.jobs:
            if line.key or not line.operations:
                self.submit(line)
            else:
                self.look_at_all()
        else:
            # Mostly the newest; an older one is gone, and must stay so.
            job = line.jobs[-1] if self.rng.random() < 0.9 else self.rng.choice(line.jobs)
            if line.members and self.rng.random() < 0.6:
                self.about(line, name, Member(job, self.rng.randrange(line.members)))
            else:
                self.about(line, name, job)

    # ---- sending ----

    def asked_for(self) -> list[AttributeId]:
        """Attributes to retrieve, in any order: the answers of one command are of one moment."""
        return self.rng.sample(SEEN_IDS, len(SEEN_IDS))

    def target(self) -> Commands:
        deadline = time.monotonic() + RECONNECT_S
        while self.session is None:
            try:
                self.session = self.connect()
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        return self.session

    def timed(self, ask: Callable[[Commands], Any]) -> tuple[Any, float, float, bool]:
        """Answer, begin, end, whether there was an answer."""
        target = self.target()
        start = time.monotonic()
        try:
            answer = ask(target)
        except (CommandTimeout, Unreachable):
            # It may still happen, while this tgtd lives.
            self.drop()
            return None, start, math.inf, False
        except OSDError as error:
            if not self.fault(error):
                raise
            self.lost += 1
            time.sleep(FAULT_S)
            return None, start, time.monotonic(), False
        self.answered += 1
        return answer, start, time.monotonic(), True

    def drop(self) -> None:
        self.lost += 1
        self.close()

    def cut(self) -> None:
        """As if it were killed, from another thread: a command may be under way."""
        session = self.session
        if session is not None:
            session.transport.drop()  # type: ignore[attr-defined]

    def noted(
        self, line: Line, name: str, argument: Any, ask: Callable[[Commands], Any]
    ) -> Operation:
        answer, start, end, answered = self.timed(ask)
        operation = Operation(name, argument, answer, start, end, answered)
        self.book.note(line, operation)
        return operation

    # ---- commands ----

    def submit(self, line: Line) -> None:
        kind = KINDS[line.kind]
        partition = self.book.zone.partition_id
        other = line.key and line.operations and self.rng.random() < 0.2
        asked = Asked(line.held, int(bool(other)))
        params = ExecParams(
            args=line.name.encode(),
            args_encoding=ArgsEncoding.BYTES,
            limits=kind.limits,
            priority=line.priority,
            name=line.name,
            key=line.key,
            flags=kind.flags | (ExecFlag.HOLD if line.held else NO_FLAGS),
            predecessor=ref(partition, id_of(line.again[1])) if line.again else None,
            after=line.after_in(partition),
            array=(line.first, line.first + line.members - 1, line.at_once)
            if line.members
            else None,
        )
        code = b"import osd\n" + kind.code + b"\n# %d" % asked.content

        def ask(target: Commands) -> int | str:
            try:
                reply = target.exec_code(self.book.zone, code, params)
            except TargetBusy:
                return BUSY
            except OSDError as error:
                if line.key and (error.asc, error.ascq) == KEY_CLASH:
                    return CLASHES
                if not line.named or (error.asc, error.ascq) != INVALID_FIELD_IN_CDB:
                    raise
                return NO_PREDECESSOR
            assert reply.job is not None
            return reply.job.object_id

        self.note_named(line, self.noted(line, history.SUBMIT, asked, ask))

    def note_named(self, line: Line, submitted: Operation) -> None:
        """Conclusions from a submission about the jobs that it names.

        One with a key may have found an earlier job of the line, and tells nothing then; nor does a
        refusal that may be for one of several.
        """
        refused = submitted.answer == NO_PREDECESSOR and len(line.named) == 1
        if refused or (not line.key and isinstance(submitted.answer, int)):
            there = GONE if refused else THERE
            for other, about in line.named:
                named = replace(submitted, name=history.NAMED, argument=about, answer=there)
                self.book.note(other, named)

    def about(self, line: Line, name: str, job: About) -> Any:
        """A status, a control or a remove of one job, or of an array."""
        surrogate = ref(self.book.zone.partition_id, id_of(job))
        polls = name == history.STATUS and self.rng.random() < 0.3

        def look(target: Commands) -> Seen | str:
            if name == history.STATUS:
                attributes = target.get_attributes(surrogate, self.asked_for())
            else:
                value = AttributeValue(Page.JOB_CONTROL, 1, bytes([CONTROL_BYTES[name]]))
                attributes = target.set_attributes(surrogate, [value], self.asked_for())
            found = seen_of(attributes, surrogate)
            return found[0] if found else GONE

        def poll(target: Commands) -> Seen | str:
            found = target.poll_job(surrogate)
            if found is None:
                return GONE
            return Seen(JobState(found.state), found.generation, found.reason, found.attempt)

        def remove(target: Commands) -> str:
            target.remove(surrogate)
            return REMOVED

        def ask(target: Commands) -> Any:
            try:
                if polls:
                    return poll(target)
                return (remove if name == history.REMOVE else look)(target)
            except NotFound:
                return GONE
            except TargetBusy:
                return BUSY
            except Conflict:
                assert name == history.REMOVE, f"{name} was refused"
                return IN_THE_WAY

        return self.noted(line, name, job, ask).answer

    def look_at_all(self) -> None:
        """All jobs in one command: a status of each that is there, at a moment of its own."""
        answer, start, end, answered = self.timed(self.members)
        if not answered:
            return
        for member in answer:
            found = seen_of(member.attributes, ref(self.book.zone.partition_id, member.object_id))
            if found:
                seen, name = found
                line = self.book.lines[name]
                if len(line.operations) < LONGEST_LINE or member.object_id not in line.jobs:
                    status = Operation(history.STATUS, member.object_id, seen, start, end)
                    self.book.note(line, status)

    def members(self, target: Commands) -> tuple[ObjectAttributes, ...]:
        """Every job's surrogate with what can be seen of it."""
        try:
            collection = ref(self.book.zone.partition_id, JOBS_COLLECTION)
            return tuple(target.get_member_attributes(collection, self.asked_for()))
        except NotFound:
            return ()

    # ---- the end ----

    def settle(self, within: float) -> list[str]:
        """Kill what still waits or runs, wait for every end, note a last listing of each line.

        Returns: what did not end in time.
        """
        deadline = time.monotonic() + within
        pending = self.unfinished()
        for line, job, _ in pending:
            # Held jobs would wait for ever; the others must end by themselves.
            self.about(line, history.RELEASE, job)
        while pending and time.monotonic() < deadline:
            pending = self.unfinished()
            time.sleep(0.02)
        self.last_look()
        return [f"{line.script}: job {job:#x} has not ended: {seen}" for line, job, seen in pending]

    def unfinished(self) -> list[tuple[Line, int, Seen]]:
        answer, _, _, answered = self.timed(self.members)
        assert answered, "the target went away while its jobs should end"
        found = []
        for member in answer:
            seen = seen_of(member.attributes, ref(self.book.zone.partition_id, member.object_id))
            if seen and not seen[0].state.terminal:
                found.append((self.book.lines[seen[1]], member.object_id, seen[0]))
        return found

    def last_look(self) -> None:
        answer, start, end, answered = self.timed(self.members)
        assert answered
        there: dict[str, list[int]] = {name: [] for name in self.book.lines}
        for member in answer:
            found = seen_of(member.attributes, ref(self.book.zone.partition_id, member.object_id))
            if found:
                there[found[1]].append(member.object_id)
                status = Operation(history.STATUS, member.object_id, found[0], start, end)
                self.book.note(self.book.lines[found[1]], status)
        for name, jobs in there.items():
            listed = Operation(history.LISTED, 0, tuple(jobs), start, end)
            line = self.book.lines[name]
            self.book.note(line, listed)
            for job, at in product(jobs, range(line.members)):
                self.about(line, history.STATUS, Member(job, at))

    def left(self) -> list[str]:
        """Jobs that COMPLETED without their output, whole and once, name other jobs than they were to,
        or have run more often than they may."""
        target, partition = self.target(), self.book.zone.partition_id
        log = bytes(target.read(ref(partition, LOG), 0, LOG_MOST))
        runs = Counter(re.findall(rb"<([0-9a-f]+ \w+)>", log))
        most = {ONCE: 1, OFTEN: Script("", frozenset()).attempts}
        found = [
            f"job {each.decode()}: it ran {count} times"
            for each, count in runs.items()
            if count > most[each.split()[1]]
        ]
        ran = {int(each.split()[0], 16) for each in runs}
        for line, about in self.there(target):
            job = ref(partition, id_of(about))
            with suppress(NotFound):  # a member that was removed alone
                status = decode_status(job, target.get_attributes(job, AT_THE_END))
                assert status is not None
                data = bytes(target.read(job, 0, 1000))
                found += [
                    f"{line.name}: {each}" for each in self.left_of(line, about, status, data)
                ]
                if status.attempt == 0 and job.object_id in ran:
                    found.append(f"{line.name}: it ended without an attempt, and ran")
        return found

    def there(self, target: Commands) -> Iterator[tuple[Line, About]]:
        for each in self.members(target):
            found = seen_of(each.attributes, ref(self.book.zone.partition_id, each.object_id))
            if found:
                line = self.book.lines[found[1]]
                yield line, each.object_id
                for at in range(line.members):
                    yield line, Member(each.object_id, at)

    def left_of(self, line: Line, about: About, status: JobStatus, data: bytes) -> Iterator[str]:
        alone = isinstance(about, Member)
        expected = b"" if line.members and not alone else line.name.encode() + b"\n"
        if status.state is JobState.COMPLETED and data != expected:
            yield f"COMPLETED, its output is {data!r}"
        again = id_of(line.again[1]) if line.again and not alone else 0
        if (status.predecessor.object_id if status.predecessor else 0) != again:
            yield f"it names {status.predecessor} as its predecessor, not {again:#x}"
        after = () if alone else line.after_in(self.book.zone.partition_id)
        if status.after != after:
            yield f"it names {status.after} as those it is to run after, not {after}"


def notebook(target: Commands, seed: int) -> Notebook:
    """For a run in a partition of its own."""
    partition = target.create_partition()
    target.create(partition, LOG)
    return Notebook(ref(partition), seed)


def work(
    book: Notebook, clients: list[Client], meanwhile: Callable[[], None]
) -> list[BaseException]:
    """Let all clients work until meanwhile() returns.  Returns: what they died of."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def run(client: Client) -> None:
        try:
            client.run(stop)
        except (OSDError, AssertionError, ValueError, KeyError) as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=(each,)) for each in clients]
    for thread in threads:
        thread.start()
    try:
        meanwhile()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return failures
