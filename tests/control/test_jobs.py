# SPDX-License-Identifier: GPL-2.0-or-later
"""JOBS: jobs at work, waiting, and ended lately; bounded."""

from __future__ import annotations

from typing import Any

from iosd_host.control.messages import Type
from pyosd.jobs import job_array
from tests.control.peer import Peer
from tests.jobs.conftest import Target
from tests.jobs.test_exec import DEADLINE_S, SLEEP, is_running, run
from tests.waiting import until

ALIVE_MOST = ENDED_MOST = 32


def listed(served: Target) -> list[dict[str, Any]]:
    with Peer(served.folder / "control") as peer:
        return list(peer.ask(Type.JOBS)["jobs"])


def one(served: Target, job: Any) -> dict[str, Any]:
    [found] = [each for each in listed(served) if each["id"] == str(job.id)]
    return found


def test_a_job_from_its_start_to_its_end(served: Target) -> None:
    held = run(served, "pass", hold=True)
    job = run(served, SLEEP, name='a "name"')
    until(lambda: is_running(job))
    found = one(served, job)
    assert (found["name"], found["state"], found["pool"]) == ('a "name"', "RUNNING", "default")
    assert (found["reason"], found["members"], found["ended_ms"]) == (0, 0, 0)
    assert 0 < found["submitted_ms"] <= found["started_ms"]
    assert found["principal"]
    rows = listed(served)
    assert [row["id"] for row in rows].index(str(job.id)) < [row["id"] for row in rows].index(
        str(held.id)
    ), "those at work come first, also before newer ones"
    job.kill()
    status = job.wait(DEADLINE_S)
    found = until(lambda: found if (found := one(served, job))["ended_ms"] else None)
    assert (found["state"], found["reason"]) == (status.state.name, int(status.reason))
    assert found["why"] == "killed on request"
    held.kill()


def test_an_array_is_one(served: Target) -> None:
    array = job_array.submit(served.commands, "pass", zone=served.partition, array=range(5))
    array.wait(DEADLINE_S)
    found = until(lambda: found if (found := one(served, array))["ended_ms"] else None)
    assert (found["members"], found["state"]) == (5, "COMPLETED")


def test_the_list_is_bounded(served: Target) -> None:
    name = "\u00fc" * 60
    done = [run(served, "pass", name=name) for _ in range(ENDED_MOST + 3)]
    for job in done:
        job.wait(DEADLINE_S)
    held = [run(served, "pass", hold=True, name=name) for _ in range(ALIVE_MOST + 3)]
    rows = listed(served)
    assert [row["id"] for row in rows[:ALIVE_MOST]] == [
        str(job.id) for job in held[: -ALIVE_MOST - 1 : -1]
    ], "the newest"
    assert len(rows) == ALIVE_MOST + ENDED_MOST
    assert all(row["state"] == "COMPLETED" for row in rows[ALIVE_MOST:])
    assert all(row["name"] == name for row in rows)
    for job in held:
        job.kill()
