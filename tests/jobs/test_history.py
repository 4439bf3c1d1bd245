# SPDX-License-Identifier: GPL-2.0-or-later
"""Eight clients submit, control and remove the same jobs while sandboxes, iosd-sandboxd and tgtd are
killed: every answer fits one order of a job's life, and no job is lost or made twice (reliability 14).

`--seed` repeats the clients' choices and the kills; `--history-seconds` makes a longer run.
"""

from __future__ import annotations

import random
import time

import pytest

from pyosd.wire.job_status import JobState
from tests.fault.test_crash_target import strike
from tests.jobs import history, history_arrays
from tests.jobs.history import (
    CLASHES,
    GONE,
    IN_THE_WAY,
    NO_PREDECESSOR,
    REMOVED,
    THERE,
    Asked,
    Script,
    Seen,
    wrong,
)
from tests.jobs.history_arrays import Member
from tests.jobs.history_clients import Client, notebook, work
from tests.jobs.history_lines import verdict
from tests.linearize import Operation
from tests.machine import unavailable
from tests.serving import Serving, missing, sandboxes_missing

CLIENTS = 8
SETTLE_S = 120.0
KILLS = (
    *(("sandbox",), ("sandbox",), ("zygote",), ("client",), ("iosd-sandboxd",)),
    *(("tgtd",), ("tgtd", "iosd-sandboxd")),
)


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_history_of_jobs(request: pytest.FixtureRequest, seed: int) -> None:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    rng = random.Random(seed)
    seconds = float(request.config.getoption("--history-seconds"))
    with Serving("--isolation", "best", "--slots", "3") as serving:
        with serving.connect() as control:
            book = notebook(control, rng.getrandbits(32))
        clients = [
            Client(n, book, lambda: serving.connect(reconnect_timeout=0), rng.getrandbits(32))
            for n in range(CLIENTS)
        ]
        kills: list[str] = []

        def too_few(end: float) -> bool:
            """On a busy machine it takes them longer to meet on enough jobs."""
            return len(book.lines) <= CLIENTS and time.monotonic() < end + SETTLE_S

        def kill_now_and_then() -> None:
            order = list(KILLS)
            rng.shuffle(order)
            end = time.monotonic() + seconds
            while time.monotonic() < end or too_few(end):
                time.sleep(rng.uniform(0.1, 0.6))
                victims = order[len(kills) % len(order)]
                serving.everything()
                before = time.monotonic()
                if "client" in victims:
                    rng.choice(clients).cut()
                else:
                    strike(serving, victims)
                kills.append("+".join(victims))
                serving.restarted(sum(name in serving.pids for name in victims))
                if "tgtd" in victims:
                    book.restarts.append((before, time.monotonic()))

        failures = work(book, clients, kill_now_and_then)
        assert failures == []
        last = clients[0]
        late = last.settle(SETTLE_S)
        left = last.left()
        last.close()
        assert "is not permitted" not in serving.text(), (
            "a transition that job/table.c does not list"
        )
    operations = sum(len(line.operations) for line in book.lines.values())
    print(
        f"seed {seed}: {operations} operations on {len(book.lines)} lines, "
        f"{sum(each.lost for each in clients)} without an answer, {book.busy} refused, "
        f"killed {', '.join(kills)}"
    )
    assert late == []
    assert left == []
    found = verdict(book)
    assert not found, "\n".join(found)
    assert len(book.lines) > CLIENTS


# ---- the checker can fail ------------------------------------------------------------------------

QUICK = Script("quick", frozenset({(JobState.COMPLETED, 0)}))
Row = tuple[str, object, object]


def seen(state: JobState, generation: int, reason: int = 0, attempt: int = 0) -> Seen:
    return Seen(state, generation, reason, attempt)


QUEUED, HELD, RUNNING = (seen(state, 1) for state in (history.Q, history.H, history.R))
RAN = seen(JobState.COMPLETED, 9, 0, 1)
WAITING = seen(history.Q, 1, 109)
UNREACHABLE = seen(JobState.FAILED, 2, 110)
KILLED = seen(JobState.CANCELLED, 9, 107, 1)
RUNS = seen(history.R, 4, 0, 1)


def one_by_one(*rows: Row) -> list[Operation]:
    """A history without concurrency; an answer of None: there was none."""
    return [
        Operation(name, argument, answer, n, n + 0.5, answer is not None)
        for n, (name, argument, answer) in enumerate(rows)
    ]


SUBMITTED: Row = (history.SUBMIT, Asked(), 7)
STATUS, REMOVE, LISTED, NAMED = (
    history.STATUS,
    history.REMOVE,
    history.LISTED,
    history.NAMED,
)

NEXT = (history.SUBMIT, Asked(content=1))
HELD_ONE: Row = (history.SUBMIT, Asked(held=True), 7)
GOOD: dict[str, list[Row]] = {
    "ran": [SUBMITTED, (STATUS, 7, QUEUED), (STATUS, 7, RUNS), (STATUS, 7, RAN)],
    "held": [
        HELD_ONE,
        (STATUS, 7, HELD),
        (history.RELEASE, 7, seen(history.Q, 2)),
    ],
    "cancelled": [
        SUBMITTED,
        (history.CANCEL, 7, seen(JobState.CANCELLED, 2, 105)),
        (LISTED, 0, (7,)),
    ],
    "cancelled too late": [SUBMITTED, (history.CANCEL, 7, RUNS), (STATUS, 7, RAN)],
    "killed": [SUBMITTED, (history.KILL, 7, RUNS), (STATUS, 7, KILLED)],
    "killed at once": [
        *(SUBMITTED, (STATUS, 7, RUNS), (history.KILL, 7, seen(history.C, 5, 107, 1))),
        (STATUS, 7, KILLED),
    ],
    "perhaps killed": [SUBMITTED, (STATUS, 7, RUNS), (history.KILL, 7, None), (STATUS, 7, RAN)],
    "tried again": [SUBMITTED, (STATUS, 7, RUNS), (STATUS, 7, seen(history.Q, 6, 104, 1))],
    "removed": [
        SUBMITTED,
        (STATUS, 7, RAN),
        (REMOVE, 7, REMOVED),
        (STATUS, 7, GONE),
        (LISTED, 0, ()),
    ],
    "perhaps removed": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, None), (STATUS, 7, GONE)],
    "once for its key": [SUBMITTED, SUBMITTED, (LISTED, 0, (7,))],
    "again after its end": [
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (history.SUBMIT, Asked(), 8)),
        (LISTED, 0, (8,)),
    ],
    "perhaps submitted": [(history.SUBMIT, Asked(), None), (LISTED, 0, (7,))],
    "never submitted": [(history.SUBMIT, Asked(), None), (LISTED, 0, ())],
    "in the way": [SUBMITTED, (REMOVE, 7, IN_THE_WAY), (STATUS, 7, RAN)],
    "run again": [
        *(SUBMITTED, (NAMED, 7, THERE), (STATUS, 7, RAN), (NAMED, 7, THERE)),
        *((REMOVE, 7, REMOVED), (NAMED, 7, GONE)),
    ],
    "another script under its key": [SUBMITTED, (*NEXT, CLASHES), (LISTED, 0, (7,))],
    "another script after its end": [
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (*NEXT, 8)),
        (history.SUBMIT, Asked(), CLASHES),
    ],
    "runs nothing again": [(history.SUBMIT, Asked(), NO_PREDECESSOR), (LISTED, 0, ())],
}
BROKEN: dict[str, list[Row]] = {
    "two ends": [SUBMITTED, (STATUS, 7, RAN), (STATUS, 7, seen(JobState.FAILED, 10, 201, 1))],
    "an end that changes": [SUBMITTED, (STATUS, 7, RAN), (STATUS, 7, RAN._replace(generation=10))],
    "back from its end": [SUBMITTED, (STATUS, 7, RAN), (STATUS, 7, seen(history.R, 10, 0, 2))],
    "generation falls": [SUBMITTED, (STATUS, 7, RUNS), (STATUS, 7, seen(history.R, 3, 0, 1))],
    "one generation, two states": [
        SUBMITTED,
        (STATUS, 7, seen(history.S, 4, 0, 1)),
        (STATUS, 7, RUNS),
    ],
    "attempt falls": [SUBMITTED, (STATUS, 7, RUNS), (STATUS, 7, seen(history.Q, 5, 104, 0))],
    "held by nobody": [SUBMITTED, (STATUS, 7, seen(history.H, 2))],
    "released by nobody": [HELD_ONE, (STATUS, 7, HELD), (STATUS, 7, RUNS)],
    "starts though held": [SUBMITTED, (history.HOLD, 7, HELD), (STATUS, 7, RUNS)],
    "hold does not hold": [SUBMITTED, (STATUS, 7, QUEUED), (history.HOLD, 7, QUEUED)],
    "cancel does not cancel": [HELD_ONE, (history.CANCEL, 7, HELD)],
    "cancelled by nobody": [SUBMITTED, (STATUS, 7, KILLED)],
    "runs though cancelled": [
        *(SUBMITTED, (history.CANCEL, 7, seen(JobState.CANCELLED, 2, 105)), (STATUS, 7, RAN)),
    ],
    "kill is forgotten": [SUBMITTED, (history.KILL, 7, RUNS), (STATUS, 7, RAN)],
    "tried again though killed": [
        *(SUBMITTED, (history.KILL, 7, RUNS), (STATUS, 7, seen(history.Q, 6, 104, 1))),
    ],
    "lost": [SUBMITTED, (STATUS, 7, GONE)],
    "lost in the end": [SUBMITTED, (STATUS, 7, RAN), (LISTED, 0, ())],
    "twice for one key": [SUBMITTED, (history.SUBMIT, Asked(), 8)],
    "twice there": [SUBMITTED, (LISTED, 0, (7, 8))],
    "twice, unanswered": [(history.SUBMIT, Asked(), None), (LISTED, 0, (7, 8))],
    "removed while it runs": [SUBMITTED, (REMOVE, 7, REMOVED), (STATUS, 7, RUNS)],
    "there after its remove": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (STATUS, 7, RAN)],
    "id used again": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), SUBMITTED],
    "in the way of nothing": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, IN_THE_WAY)],
    "run again though removed": [
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (NAMED, 7, THERE)),
    ],
    "not run again though there": [SUBMITTED, (NAMED, 7, GONE)],
    "refused though it had a job": [SUBMITTED, (history.SUBMIT, Asked(), NO_PREDECESSOR)],
    "another script's job under its key": [SUBMITTED, (*NEXT, 7)],
    "clashes with nothing": [(*NEXT, CLASHES)],
    "clashes with itself": [SUBMITTED, (history.SUBMIT, Asked(), CLASHES)],
    "runs too often": [SUBMITTED, (STATUS, 7, RAN._replace(attempt=4))],
    "waits for nothing": [SUBMITTED, (STATUS, 7, UNREACHABLE)],
    "an end of another script": [SUBMITTED, (STATUS, 7, seen(JobState.TIMEOUT, 9, 301, 1))],
}


@pytest.mark.parametrize("name", GOOD)
def test_good_history(name: str) -> None:
    assert wrong(QUICK, one_by_one(*GOOD[name]), history.machine(QUICK)) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_history_is_seen(name: str) -> None:
    assert wrong(QUICK, one_by_one(*BROKEN[name]), history.machine(QUICK))


OTHER = Member(7, 0)


def seen_of(n: int, what: str) -> Row:
    return history.AFTER, n, what


GOOD_AFTER: dict[str, list[Row]] = {
    "runs after it": [
        *(SUBMITTED, (STATUS, 7, WAITING), seen_of(0, history.WAITS), seen_of(0, history.MET)),
        *(
            (STATUS, 7, WAITING),
            (STATUS, 7, RUNS),
            seen_of(0, history.OVER),
            seen_of(1, history.MET),
        ),
    ],
    "never can": [
        *(SUBMITTED, (history.HOLD, 7, HELD), seen_of(0, history.MISSED), (STATUS, 7, HELD)),
        *((STATUS, 7, UNREACHABLE), seen_of(1, history.WAITS)),
    ],
    "about to end": [
        *(SUBMITTED, seen_of(0, history.MISSED), (history.HOLD, 7, WAITING)),
        (STATUS, 7, UNREACHABLE),
    ],
    "had ended before": [seen_of(0, history.MISSED), SUBMITTED, (STATUS, 7, UNREACHABLE)],
    "cancelled meanwhile": [
        *(SUBMITTED, (history.CANCEL, 7, seen(JobState.CANCELLED, 2, 105))),
        *(seen_of(0, history.WAITS), seen_of(0, history.MISSED)),
    ],
}
BROKEN_AFTER: dict[str, list[Row]] = {
    "runs before it": [SUBMITTED, (STATUS, 7, RUNS), seen_of(0, history.WAITS)],
    "runs before the second": [
        *(SUBMITTED, seen_of(0, history.MET), (STATUS, 7, RUNS), seen_of(1, history.WAITS)),
    ],
    "runs all the same": [SUBMITTED, seen_of(0, history.MISSED), (STATUS, 7, RUNS)],
    "ran all the same": [SUBMITTED, (STATUS, 7, RAN), seen_of(0, history.MISSED)],
    "fails too early": [
        SUBMITTED,
        (STATUS, 7, UNREACHABLE),
        *(seen_of(n, history.WAITS) for n in (0, 1)),
    ],
    "fails for nothing": [
        *(SUBMITTED, (STATUS, 7, UNREACHABLE), seen_of(0, history.MET), seen_of(1, history.MET)),
    ],
    "fails for one whose end does not matter": [
        *(SUBMITTED, seen_of(0, history.MET), (STATUS, 7, UNREACHABLE)),
    ],
    "is not held": [
        *(SUBMITTED, (history.HOLD, 7, WAITING), seen_of(0, history.MET), seen_of(1, history.MET)),
    ],
    "waits for nothing more": [SUBMITTED, (STATUS, 7, QUEUED), seen_of(0, history.WAITS)],
    "gone before it has ended": [SUBMITTED, seen_of(0, history.OVER), seen_of(0, history.WAITS)],
    "fails by itself": [
        *(SUBMITTED, seen_of(0, history.MISSED), (STATUS, 7, seen(JobState.FAILED, 2, 201))),
    ],
}
NEXT_TO_TWO = Script("quick", QUICK.ends, after=(history.WAITS, history.WAITS_ANY))


@pytest.mark.parametrize("name", GOOD_AFTER)
def test_good_history_after_others(name: str) -> None:
    rows = one_by_one(*GOOD_AFTER[name])
    assert wrong(NEXT_TO_TWO, rows, history.machine(NEXT_TO_TWO)) == []


@pytest.mark.parametrize("name", BROKEN_AFTER)
def test_broken_history_after_others_is_seen(name: str) -> None:
    assert wrong(NEXT_TO_TWO, one_by_one(*BROKEN_AFTER[name]), history.machine(NEXT_TO_TWO))


ENDED = seen(JobState.CANCELLED, 9, 107)


def with_states(*states: JobState) -> Seen:
    return RUNS._replace(states=states)


STILL_HELD = HELD._replace(states=3 * (JobState.CANCELLED,))
ALL_CANCELLED: list[Row] = [(history.CANCEL, Member(7, at), ENDED) for at in range(3)]
GOOD_ARRAYS: dict[str, list[Row]] = {
    "one at a time": [
        *(SUBMITTED, (STATUS, 7, with_states(history.R, history.Q, history.Q))),
        *((STATUS, OTHER, RUNS), (NAMED, OTHER, THERE), (NAMED, 7, THERE), (STATUS, OTHER, RAN)),
    ],
    "killed": [
        *(SUBMITTED, (history.KILL, 7, QUEUED), (STATUS, OTHER, QUEUED), (STATUS, 7, ENDED)),
        *((STATUS, OTHER, KILLED), (REMOVE, 7, REMOVED), (STATUS, OTHER, GONE)),
    ],
    "one held": [
        *(SUBMITTED, (history.HOLD, OTHER, HELD), (STATUS, 7, RUNS), (STATUS, OTHER, HELD)),
        *((history.RELEASE, 7, RUNS), (STATUS, OTHER, RAN._replace(generation=10))),
    ],
    "one removed": [
        *(SUBMITTED, (REMOVE, OTHER, IN_THE_WAY), (STATUS, 7, RAN), (REMOVE, OTHER, REMOVED)),
        *((STATUS, OTHER, GONE), (STATUS, 7, RAN)),
    ],
    "cancelled one removed before the array was seen to end": [
        *(SUBMITTED, (history.CANCEL, OTHER, ENDED), (REMOVE, OTHER, REMOVED)),
        (STATUS, 7, ENDED._replace(states=(JobState.CANCELLED, *2 * [JobState.COMPLETED]))),
    ],
    "held until it ends": [HELD_ONE, *ALL_CANCELLED, (STATUS, 7, STILL_HELD), (STATUS, 7, ENDED)],
    "held by its members until it ends": [
        *(SUBMITTED, (STATUS, 7, QUEUED)),
        *((history.HOLD, Member(7, at), HELD) for at in range(3)),
        *(*ALL_CANCELLED, (STATUS, 7, STILL_HELD._replace(generation=5))),
    ],
    "held when all members have ended": [
        *(SUBMITTED, *ALL_CANCELLED, (history.HOLD, 7, STILL_HELD), (STATUS, 7, STILL_HELD)),
        (STATUS, 7, ENDED),
    ],
}
GOOD_ARRAY_AFTER: list[Row] = [
    *(SUBMITTED, seen_of(0, history.MISSED), (STATUS, 7, UNREACHABLE)),
    *((REMOVE, OTHER, REMOVED), (STATUS, 7, UNREACHABLE), (STATUS, Member(7, 1), UNREACHABLE)),
]
BROKEN_ARRAYS: dict[str, list[Row]] = {
    "run again though the member was removed": [
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, OTHER, REMOVED), (NAMED, OTHER, THERE)),
    ],
    "too many at once": [SUBMITTED, (STATUS, 7, with_states(history.R, history.C, history.Q))],
    "a member is not what the array says": [
        *(
            SUBMITTED,
            (STATUS, OTHER, RAN),
            (STATUS, 7, with_states(history.R, history.Q, history.Q)),
        ),
    ],
    "held by nobody": [SUBMITTED, (STATUS, 7, HELD)],
    "released by nobody": [HELD_ONE, (STATUS, 7, HELD), (STATUS, OTHER, QUEUED)],
    "cancelled by nobody": [SUBMITTED, (STATUS, 7, ENDED)],
    "ends before its members": [SUBMITTED, (STATUS, 7, RAN), (STATUS, OTHER, RUNS)],
    "completed though one was cancelled": [
        *(SUBMITTED, (history.CANCEL, OTHER, ENDED), (STATUS, 7, RAN)),
    ],
    "completed though the one removed was cancelled": [
        *(SUBMITTED, (history.CANCEL, OTHER, ENDED), (REMOVE, OTHER, REMOVED), (STATUS, 7, RAN)),
    ],
    "held again, but by nobody": [
        *(HELD_ONE, *((history.RELEASE, Member(7, at), QUEUED) for at in range(3))),
        *(*ALL_CANCELLED, (STATUS, 7, STILL_HELD)),
    ],
    "held by nobody when all members have ended": [
        *(SUBMITTED, *ALL_CANCELLED, (STATUS, 7, STILL_HELD)),
    ],
    "held though it has ended": [HELD_ONE, *ALL_CANCELLED, (STATUS, 7, ENDED), (STATUS, 7, HELD)],
    "kill of one kills all": [
        SUBMITTED,
        (history.KILL, OTHER, KILLED),
        (STATUS, Member(7, 1), KILLED),
    ],
    "removed while a member runs": [SUBMITTED, (REMOVE, 7, REMOVED), (STATUS, OTHER, RUNS)],
    "a member outlives it": [
        SUBMITTED,
        (STATUS, 7, RAN),
        (REMOVE, 7, REMOVED),
        (STATUS, OTHER, RAN),
    ],
}
ARRAY = Script("quick", QUICK.ends, members=3, at_once=1)


@pytest.mark.parametrize("name", GOOD_ARRAYS)
def test_good_history_of_an_array(name: str) -> None:
    assert wrong(ARRAY, one_by_one(*GOOD_ARRAYS[name]), history_arrays.machine(ARRAY)) == []


def test_good_history_of_an_array_after_others() -> None:
    script = Script("quick", QUICK.ends, members=3, after=(history.WAITS,))
    machine = history_arrays.machine(script)
    assert wrong(script, one_by_one(*GOOD_ARRAY_AFTER), machine) == []
    started = [*GOOD_ARRAY_AFTER[:2], (STATUS, OTHER, RUNS)]
    assert wrong(script, one_by_one(*started), machine)


@pytest.mark.parametrize("name", BROKEN_ARRAYS)
def test_broken_history_of_an_array_is_seen(name: str) -> None:
    assert wrong(ARRAY, one_by_one(*BROKEN_ARRAYS[name]), history_arrays.machine(ARRAY))


def test_concurrent_answers_may_come_in_any_order() -> None:
    """The same three answers one after the other are wrong; at once they fit."""
    rows = [(0.0, 9.0, (STATUS, 7, RAN)), (0.5, 9.0, (STATUS, 7, RUNS)), (0.2, 9.0, SUBMITTED)]
    at_once = [Operation(name, about, answer, s, e) for s, e, (name, about, answer) in rows]
    assert wrong(QUICK, at_once, history.machine(QUICK)) == []
    assert wrong(QUICK, one_by_one(*(row for _, _, row in rows)), history.machine(QUICK))
