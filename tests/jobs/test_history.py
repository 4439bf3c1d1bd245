# SPDX-License-Identifier: GPL-2.0-or-later
"""Eight clients submit, control and remove the same jobs while sandboxes, iosd-sandboxd and tgtd are
killed: every answer fits one order of a job's life, and no job is lost or made twice (reliability 14).

`--seed` repeats the clients' choices and the kills; `--history-seconds` makes a longer run.
"""

from __future__ import annotations

import random
import time

import pytest

from pyosd.job_status import JobState
from pyosd.types import ref
from tests.conftest import unavailable
from tests.fault.test_crash_target import strike
from tests.jobs import history, history_arrays
from tests.jobs.history import (
    GONE,
    IN_THE_WAY,
    NO_PREDECESSOR,
    REMOVED,
    THERE,
    Script,
    Seen,
    wrong,
)
from tests.jobs.history_arrays import Member
from tests.jobs.history_clients import Client, Notebook, verdict, work
from tests.linearize import Operation
from tests.serving import Serving, missing, sandboxes_missing

CLIENTS = 8
SETTLE_S = 60.0
KILLS = (("sandbox",), ("sandbox",), ("iosd-sandboxd",), ("tgtd",), ("tgtd", "iosd-sandboxd"))


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
            book = Notebook(ref(control.create_partition()), rng.getrandbits(32))
        clients = [
            Client(n, book, lambda: serving.connect(reconnect_timeout=0), rng.getrandbits(32))
            for n in range(CLIENTS)
        ]
        kills: list[str] = []

        def kill_now_and_then() -> None:
            order = list(KILLS)
            rng.shuffle(order)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(rng.uniform(0.1, 0.6))
                victims = order[len(kills) % len(order)]
                serving.everything()
                strike(serving, victims)
                kills.append("+".join(victims))
                serving.restarted(sum(name != "sandbox" for name in victims))

        failures = work(book, clients, kill_now_and_then)
        assert failures == []
        last = clients[0]
        late = last.settle(SETTLE_S)
        outputs = last.outputs()
        last.close()
        assert "is not permitted" not in serving.text(), (
            "a transition that job_table.c does not list"
        )
    operations = sum(len(line.operations) for line in book.lines.values())
    print(
        f"seed {seed}: {operations} operations on {len(book.lines)} lines, "
        f"{sum(each.lost for each in clients)} without an answer, {book.busy} refused, "
        f"killed {', '.join(kills)}"
    )
    assert late == []
    assert outputs == []
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
KILLED = seen(JobState.CANCELLED, 9, 107, 1)
RUNS = seen(history.R, 4, 0, 1)


def one_by_one(*rows: Row) -> list[Operation]:
    """A history without concurrency; an answer of None: there was none."""
    return [
        Operation(name, argument, answer, n, n + 0.5, answer is not None)
        for n, (name, argument, answer) in enumerate(rows)
    ]


SUBMITTED: Row = (history.SUBMIT, False, 7)
STATUS, REMOVE, LISTED, RETRIED = (
    history.STATUS,
    history.REMOVE,
    history.LISTED,
    history.RETRIED,
)

GOOD: dict[str, list[Row]] = {
    "ran": [SUBMITTED, (STATUS, 7, QUEUED), (STATUS, 7, RUNS), (STATUS, 7, RAN)],
    "held": [
        (history.SUBMIT, True, 7),
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
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (history.SUBMIT, False, 8)),
        (LISTED, 0, (8,)),
    ],
    "perhaps submitted": [(history.SUBMIT, False, None), (LISTED, 0, (7,))],
    "never submitted": [(history.SUBMIT, False, None), (LISTED, 0, ())],
    "in the way": [SUBMITTED, (REMOVE, 7, IN_THE_WAY), (STATUS, 7, RAN)],
    "run again": [
        *(SUBMITTED, (RETRIED, 7, THERE), (STATUS, 7, RAN), (RETRIED, 7, THERE)),
        *((REMOVE, 7, REMOVED), (RETRIED, 7, GONE)),
    ],
    "runs nothing again": [(history.SUBMIT, False, NO_PREDECESSOR), (LISTED, 0, ())],
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
    "released by nobody": [(history.SUBMIT, True, 7), (STATUS, 7, HELD), (STATUS, 7, RUNS)],
    "starts though held": [SUBMITTED, (history.HOLD, 7, HELD), (STATUS, 7, RUNS)],
    "hold does not hold": [SUBMITTED, (STATUS, 7, QUEUED), (history.HOLD, 7, QUEUED)],
    "cancel does not cancel": [(history.SUBMIT, True, 7), (history.CANCEL, 7, HELD)],
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
    "twice for one key": [SUBMITTED, (history.SUBMIT, False, 8)],
    "twice there": [SUBMITTED, (LISTED, 0, (7, 8))],
    "twice, unanswered": [(history.SUBMIT, False, None), (LISTED, 0, (7, 8))],
    "removed while it runs": [SUBMITTED, (REMOVE, 7, REMOVED), (STATUS, 7, RUNS)],
    "there after its remove": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (STATUS, 7, RAN)],
    "id used again": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), SUBMITTED],
    "in the way of nothing": [SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, IN_THE_WAY)],
    "run again though removed": [
        *(SUBMITTED, (STATUS, 7, RAN), (REMOVE, 7, REMOVED), (RETRIED, 7, THERE)),
    ],
    "not run again though there": [SUBMITTED, (RETRIED, 7, GONE)],
    "refused though it had a job": [SUBMITTED, (history.SUBMIT, False, NO_PREDECESSOR)],
    "an end of another script": [SUBMITTED, (STATUS, 7, seen(JobState.TIMEOUT, 9, 301, 1))],
}


@pytest.mark.parametrize("name", GOOD)
def test_good_history(name: str) -> None:
    assert wrong(QUICK, one_by_one(*GOOD[name])) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_history_is_seen(name: str) -> None:
    assert wrong(QUICK, one_by_one(*BROKEN[name]))


OTHER = Member(7, 0)
ENDED = seen(JobState.CANCELLED, 9, 107)
GOOD_ARRAYS: dict[str, list[Row]] = {
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
}
BROKEN_ARRAYS: dict[str, list[Row]] = {
    "held by nobody": [SUBMITTED, (STATUS, 7, HELD)],
    "released by nobody": [(history.SUBMIT, True, 7), (STATUS, 7, HELD), (STATUS, OTHER, QUEUED)],
    "cancelled by nobody": [SUBMITTED, (STATUS, 7, ENDED)],
    "ends before its members": [SUBMITTED, (STATUS, 7, RAN), (STATUS, OTHER, RUNS)],
    "completed though one was cancelled": [
        *(SUBMITTED, (history.CANCEL, OTHER, ENDED), (STATUS, 7, RAN)),
    ],
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
ARRAY = Script("quick", QUICK.ends, array=True)


@pytest.mark.parametrize("name", GOOD_ARRAYS)
def test_good_history_of_an_array(name: str) -> None:
    assert wrong(ARRAY, one_by_one(*GOOD_ARRAYS[name]), history_arrays.MACHINE) == []


@pytest.mark.parametrize("name", BROKEN_ARRAYS)
def test_broken_history_of_an_array_is_seen(name: str) -> None:
    assert wrong(ARRAY, one_by_one(*BROKEN_ARRAYS[name]), history_arrays.MACHINE)


def test_concurrent_answers_may_come_in_any_order() -> None:
    """The same three answers one after the other are wrong; at once they fit."""
    rows = [(0.0, 9.0, (STATUS, 7, RAN)), (0.5, 9.0, (STATUS, 7, RUNS)), (0.2, 9.0, SUBMITTED)]
    at_once = [Operation(name, about, answer, s, e) for s, e, (name, about, answer) in rows]
    assert wrong(QUICK, at_once) == []
    assert wrong(QUICK, one_by_one(*(row for _, _, row in rows)))
