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
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyosd
from pyosd.attributes import Page
from pyosd.commands import Commands
from pyosd.errors import CommandTimeout, Conflict, NotFound, OSDError, TargetBusy, Unreachable
from pyosd.exec_params import ArgsEncoding, ExecFlag, ExecParams, Limits
from pyosd.job_status import JobState, Number, decode_status
from pyosd.types import AttributeId, AttributeValue, ObjectAttributes, ObjectRef, ref
from tests.jobs import history, history_arrays
from tests.jobs.history import BUSY, GONE, IN_THE_WAY, NO_PREDECESSOR, REMOVED, THERE, Script, Seen
from tests.jobs.history_arrays import MEMBERS, Member
from tests.linearize import Operation

JOBS_COLLECTION = 0x1001
CONTROL_BYTES = {history.CANCEL: 1, history.KILL: 2, history.HOLD: 3, history.RELEASE: 4}
SEEN_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number)
    for number in (Number.GENERATION, Number.STATE, Number.REASON, Number.ATTEMPT, Number.NAME)
)
WITH_PREDECESSOR = (*SEEN_IDS, AttributeId(Page.JOB_STATUS, Number.PREDECESSOR))
INVALID_FIELD_IN_CDB = (0x24, 0)
RECONNECT_S = 60.0
FAULT_S = 0.005
"""Pause after an error that a fault made."""
OPEN_LINES = 6
"""Lines that clients work on at a time: few, so that they meet."""
RETRIES = 0.25
"""Share of lines that are another one's job, run again."""
ARRAYS = 0.2
"""Share of lines that are arrays."""
LONGEST_LINE = 40
"""Operations after which a line is left alone, but for its end."""


def ends(*pairs: tuple[JobState, int]) -> frozenset[tuple[JobState, int]]:
    return frozenset(pairs)


NO_LIMITS, NO_FLAGS = Limits(), ExecFlag(0)
WRITES = b"""
import time
try:
    osd.zone.create_many(1)
except Exception:
    pass  # a full or broken disk
time.sleep(0.05)
print(osd.args.decode())
"""
TELLS = b"""
import sys, time
for _ in range(30):
    print(".", file=sys.stderr, flush=True)
    time.sleep(0.005)
print(osd.args.decode())
"""
"""Each word is a new generation."""
DONE = (JobState.COMPLETED, 0)


@dataclass(frozen=True)
class Kind:
    """A script, how it is submitted, how it ends by itself."""

    code: bytes
    ends: frozenset[tuple[JobState, int]]
    limits: Limits = NO_LIMITS
    flags: ExecFlag = NO_FLAGS


KINDS = {
    "quick": Kind(b"print(osd.args.decode())", ends(DONE)),
    "slow": Kind(b"import time; time.sleep(0.05); print(osd.args.decode())", ends(DONE)),
    "long": Kind(b"import time; time.sleep(0.5); print(osd.args.decode())", ends(DONE)),
    "tells": Kind(TELLS, ends(DONE)),
    "raises": Kind(b"1 / 0", ends((JobState.FAILED, 201))),
    "exits": Kind(b"raise SystemExit(3)", ends((JobState.FAILED, 202))),
    "over time": Kind(
        b"while True: pass", ends((JobState.TIMEOUT, 301)), Limits(wall=0.1, cpu=60.0)
    ),
    "writes": Kind(
        WRITES,
        ends(DONE),
    ),
    "may write twice": Kind(
        WRITES,
        ends(DONE),
        flags=ExecFlag.IDEMPOTENT,
    ),
}
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


@dataclass
class Line:
    """One submission and all that was asked about it.

    jobs: ids it was answered with.  parent: the line and the job of it that this one runs again.
    at_once: of an array's members; None: it is no array.
    """

    name: str
    kind: str
    key: bytes
    held: bool
    parent: tuple[Line, int] | None = None
    at_once: int | None = None
    jobs: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def script(self) -> Script:
        array = self.at_once is not None
        return Script(f"{self.kind} ({self.name})", KINDS[self.kind].ends, array)


class Notebook:
    """All lines of a run.  Thread-safe."""

    def __init__(self, zone: ObjectRef, seed: int) -> None:
        self.zone, self.rng = zone, random.Random(seed)
        self.lock = threading.Lock()
        self.lines: dict[str, Line] = {}
        self.open: list[Line] = []
        self.busy = 0

    def new_line(self) -> Line:
        with self.lock:
            kind = self.rng.choice(sorted(KINDS))
            name = f"line-{len(self.lines)}"
            key = name.encode() if self.rng.random() < 0.6 else b""
            line = Line(name, kind, key, self.rng.random() < 0.25)
            if self.rng.random() < ARRAYS:
                line.at_once = self.rng.choice([0, 1])
            with_jobs = [each for each in self.open if each.jobs]
            if with_jobs and self.rng.random() < RETRIES:
                parent = self.rng.choice(with_jobs)
                line.kind, line.parent = parent.kind, (parent, parent.jobs[-1])
            self.lines[name] = line
            return line

    def opened(self, line: Line) -> None:
        """Others may work on it from now on."""
        with self.lock:
            self.open.append(line)

    def pick(self, rng: random.Random) -> Line | None:
        """A line to work on; None: begin another."""
        with self.lock:
            self.open = [each for each in self.open if len(each.operations) < LONGEST_LINE]
            return rng.choice(self.open) if len(self.open) >= OPEN_LINES else None

    def note(self, line: Line, operation: Operation) -> None:
        with self.lock:
            line.operations.append(operation)
            answer = operation.answer
            self.busy += answer == BUSY
            made = operation.name == history.SUBMIT and isinstance(answer, int)
            if made and answer not in line.jobs:
                line.jobs.append(answer)


def seen_of(attributes: tuple[AttributeValue, ...], job: ObjectRef) -> tuple[Seen, str] | None:
    status = decode_status(job, attributes)
    if status is None:
        return None
    return Seen(status.state, status.generation, status.reason, status.attempt), status.name


def no_fault(_: OSDError) -> bool:
    return False


class Client:
    """One of those who work at once.

    fault: whether an error is a fault's doing: then the command may have happened, as one without an
    answer.  dropped: sessions are also lost while tgtd lives on, so that a command may happen later.
    """

    def __init__(
        self,
        number: int,
        book: Notebook,
        connect: Callable[[], pyosd.Target],
        seed: int,
        *,
        fault: Callable[[OSDError], bool] = no_fault,
        dropped: bool = False,
    ) -> None:
        self.number, self.book, self.connect = number, book, connect
        self.fault, self.dropped = fault, dropped
        self.rng = random.Random(seed)
        self.session: pyosd.Target | None = None
        self.answered = self.lost = 0

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        while not stop.is_set():
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
            if line.at_once is not None and self.rng.random() < 0.6:
                self.about(line, name, Member(job, self.rng.randrange(MEMBERS)))
            else:
                self.about(line, name, job)

    # ---- sending ----

    def asked_for(self) -> list[AttributeId]:
        """What to ask for, in any order: one command's answers are of one moment."""
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
        except CommandTimeout:
            self.drop()
            return None, start, math.inf, False
        except Unreachable:
            # Mostly the session is lost when tgtd is gone: nothing happens after that.
            end = math.inf if self.dropped else time.monotonic()
            self.drop()
            return None, start, end, False
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
        params = ExecParams(
            args=line.name.encode(),
            args_encoding=ArgsEncoding.BYTES,
            limits=kind.limits,
            name=line.name,
            key=line.key,
            flags=kind.flags | (ExecFlag.HOLD if line.held else NO_FLAGS),
            predecessor=ref(self.book.zone.partition_id, line.parent[1]) if line.parent else None,
            array=None if line.at_once is None else (0, MEMBERS - 1, line.at_once),
        )

        def ask(target: Commands) -> int | str:
            try:
                reply = target.exec_code(self.book.zone, b"import osd\n" + kind.code, params)
            except TargetBusy:
                return BUSY
            except OSDError as error:
                if not line.parent or (error.asc, error.ascq) != INVALID_FIELD_IN_CDB:
                    raise
                return NO_PREDECESSOR
            assert reply.job is not None
            return reply.job.object_id

        submitted = self.noted(line, history.SUBMIT, line.held, ask)
        if line.parent:
            self.note_retry(line, line.parent, submitted)

    def note_retry(self, line: Line, parent: tuple[Line, int], submitted: Operation) -> None:
        """What a submission tells of the job it runs again.

        One with a key may have found an earlier job of the line, and tells nothing then.
        """
        refused = submitted.answer == NO_PREDECESSOR
        if refused or (not line.key and isinstance(submitted.answer, int)):
            there = GONE if refused else THERE
            retried = replace(submitted, name=history.RETRIED, argument=parent[1], answer=there)
            self.book.note(parent[0], retried)

    def about(self, line: Line, name: str, job: int | Member) -> Any:
        """A status, a control or a remove of one job, or of an array."""
        object_id = job.job if isinstance(job, Member) else job
        surrogate = ref(self.book.zone.partition_id, object_id)

        def look(target: Commands) -> Seen | str:
            if name == history.STATUS:
                attributes = target.get_attributes(surrogate, self.asked_for())
            else:
                value = AttributeValue(Page.JOB_CONTROL, 1, bytes([CONTROL_BYTES[name]]))
                attributes = target.set_attributes(surrogate, [value], self.asked_for())
            found = seen_of(attributes, surrogate)
            return found[0] if found else GONE

        def remove(target: Commands) -> str:
            target.remove(surrogate)
            return REMOVED

        def ask(target: Commands) -> Any:
            try:
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
        for line, job in pending:
            # What is held would wait for ever; the rest shall end by itself.
            self.about(line, history.RELEASE, job)
        while pending and time.monotonic() < deadline:
            pending = self.unfinished()
            time.sleep(0.02)
        self.last_look()
        return [f"{line.name}: job {job:#x} has not ended" for line, job in pending]

    def unfinished(self) -> list[tuple[Line, int]]:
        answer, _, _, answered = self.timed(self.members)
        assert answered, "the target went away while its jobs should end"
        found = []
        for member in answer:
            seen = seen_of(member.attributes, ref(self.book.zone.partition_id, member.object_id))
            if seen and not seen[0].state.terminal:
                found.append((self.book.lines[seen[1]], member.object_id))
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
            self.book.note(self.book.lines[name], listed)

    def outputs(self) -> list[str]:
        """Jobs that COMPLETED without their output, whole and once, or name another predecessor."""
        target = self.target()
        found = []
        for member in self.members(target):
            job = ref(self.book.zone.partition_id, member.object_id)
            seen = seen_of(member.attributes, job)
            if seen is None:
                continue
            state, name = seen[0].state, seen[1]
            expected = b"" if self.book.lines[name].script.array else name.encode() + b"\n"
            data = bytes(target.read(job, 0, 1000))
            if state is JobState.COMPLETED and data != expected:
                found.append(f"{name}: COMPLETED, its output is {data!r}")
            status = decode_status(job, target.get_attributes(job, WITH_PREDECESSOR))
            again, parent = status and status.predecessor, self.book.lines[name].parent
            if (again and again.object_id) != (parent and parent[1]):
                found.append(f"{name}: it names {again} as its predecessor")
        return found


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


def verdict(book: Notebook, also: frozenset[tuple[JobState, int]] = frozenset()) -> list[str]:
    """What is wrong with the whole run, line by line.  also: ends that any script may come to."""
    found = []
    for line in book.lines.values():
        script = replace(line.script, ends=line.script.ends | also)
        machine = history_arrays.MACHINE if script.array else history.MACHINE
        texts = history.wrong(script, line.operations, machine)
        found += [f"{script.name}: {text}" for text in texts]
    return found
