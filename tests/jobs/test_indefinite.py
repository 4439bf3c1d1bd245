# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC whose connection is cut at every kind of place in its request and its response: with a key the
same job is found by submitting again, without one it is there or not, and a listing says (reliability
15).

A relay between client and tgtd lets so many bytes of one direction through and then resets both sides.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import pyosd
from pyosd import jobs
from pyosd.errors import SessionLost
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobState
from tests.e2e.raw_iscsi import reset_on_close
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WAIT_S = 60.0
HEADER = 48
NEVER = 1 << 40
UP, DOWN = 0, 1
"""From the client, to the client."""


class Relay:
    """Passes one connection at a time on to a target; a context manager.

    passed: bytes of each direction since `arm`.
    """

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None and place.port is not None
        self.to = (place.hostname, place.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{place.port}/", f":{self.listener.getsockname()[1]}/")
        self.room, self.passed, self.cuts = [NEVER, NEVER], [0, 0], 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def arm(self, direction: int, count: int) -> None:
        """Cut once so many bytes of a direction have passed from now on."""
        self.passed, self.room = [0, 0], [NEVER, NEVER]
        self.room[direction] = count

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, socket.create_connection(self.to) as target:
                self.pass_on(client, target)

    def pass_on(self, client: socket.socket, target: socket.socket) -> None:
        ends = (client, target)
        with selectors.DefaultSelector() as ready:
            for direction, end in enumerate(ends):
                ready.register(end, selectors.EVENT_READ, direction)
            while True:
                for key, _ in ready.select():
                    try:
                        data = ends[key.data].recv(1 << 16)
                        if not data:
                            return
                        ends[1 - key.data].sendall(self.let_through(key.data, data))
                    except OSError:
                        return
                if self.passed[UP] >= self.room[UP] or self.passed[DOWN] >= self.room[DOWN]:
                    self.cuts += 1
                    self.room = [NEVER, NEVER]
                    for end in ends:
                        reset_on_close(end)
                    return

    def let_through(self, direction: int, data: bytes) -> bytes:
        """The part of it that can pass."""
        data = data[: max(0, self.room[direction] - self.passed[direction])]
        self.passed[direction] += len(data)
        return data


@pytest.fixture
def relay(serving: Serving) -> Iterator[Relay]:
    if sandboxes_missing():
        unavailable("sandbox", "no sandboxes here")
    with Relay(serving.url) as made:
        yield made


@pytest.fixture
def zone(target: pyosd.Target) -> ObjectRef:
    return ref(target.create_partition())


@pytest.fixture
def target(serving: Serving) -> Iterator[pyosd.Target]:
    """A session beside the relay."""
    with serving.connect() as session:
        yield session


def places(total: int) -> list[int]:
    """Boundaries of a direction with so many bytes: in and around the header, in the middle, at the
    end."""
    found = {1, HEADER - 1, HEADER, HEADER + 1, total // 2, total - 1, total}
    return sorted(each for each in found if 0 < each <= total)


def lengths(relay: Relay, zone: ObjectRef, **how: object) -> list[int]:
    """Bytes of each direction of an EXEC that nothing happens to, at least: the status of a job that
    starved says for how long, and is longer."""
    with pyosd.connect(relay.url) as session:

        def measured() -> list[int] | None:
            session.ping()
            relay.arm(UP, NEVER)
            job = jobs.submit(session, SCRIPT, zone=zone, name="undisturbed", **how)  # type: ignore[arg-type]
            found = list(relay.passed)
            if job.wait(WAIT_S).starved_time == 0:
                return found
            job.remove()
            return None

        return until(measured, "each job starves")


SCRIPT = "import osd\nprint('ran')\nosd.result(b'r' * 300)"
WAITS = pytest.mark.parametrize("wait", [None, 20.0], ids=["asynchronous", "synchronous"])


@WAITS
def test_with_a_key_it_is_the_same_job(
    relay: Relay, target: pyosd.Target, zone: ObjectRef, wait: float | None
) -> None:
    """However far request or response came: submitted again, by pyosd and by hand, it is one job."""
    both = lengths(relay, zone, wait=wait, key="undisturbed")
    cuts = [(way, at) for way in (UP, DOWN) for at in places(both[way])]
    for number, (way, at) in enumerate(cuts):
        how = {"zone": zone, "key": f"key {number}", "name": f"cut {way} {at}", "wait": wait}
        with pyosd.connect(relay.url) as session:
            session.ping()
            relay.arm(way, at)
            job = jobs.submit(session, SCRIPT, **how)  # type: ignore[arg-type]
        again = jobs.submit(target, SCRIPT, **how)  # type: ignore[arg-type]
        assert again.id == job.id, (way, at)
    # If the whole response had arrived, nothing was lost. Otherwise pyosd had to submit it twice.
    assert len(cuts) - 2 <= relay.cuts <= len(cuts)
    made = sorted(each.name for each in jobs.list_jobs(target, zone.partition_id))
    assert made == sorted(["undisturbed", *(f"cut {way} {at}" for way, at in cuts)])
    for each in jobs.list_jobs(target, zone.partition_id):
        assert target.job(each.id).wait(WAIT_S).state is JobState.COMPLETED
        assert target.job(each.id).output() == b"ran\n"


@WAITS
def test_without_a_key_a_listing_tells(
    relay: Relay, target: pyosd.Target, zone: ObjectRef, wait: float | None
) -> None:
    """SessionLost; at most one job, none if the request was cut short, one if it was not."""
    both = lengths(relay, zone, wait=wait)
    for way, at in itertools.chain(
        ((UP, at) for at in places(both[UP])), ((DOWN, at) for at in places(both[DOWN])[:-1])
    ):
        name = f"cut {way} {at}"
        with pyosd.connect(relay.url) as session:
            session.ping()
            relay.arm(way, at)
            with pytest.raises(SessionLost):
                jobs.submit(session, SCRIPT, zone=zone, name=name, wait=wait)
        # The first PDU from the target can be an R2T, in answer to a part of the request.
        whole = way == DOWN and relay.passed[UP] >= both[UP]
        cut_short = relay.passed[UP] < both[UP]
        found = named(target, zone, name)
        assert len(found) <= 1 and (not whole or found) and (not cut_short or not found), name
        for job in found:
            assert target.job(job).wait(WAIT_S).state is JobState.COMPLETED


def named(target: pyosd.Target, zone: ObjectRef, name: str) -> list[ObjectRef]:
    return [each.id for each in jobs.list_jobs(target, zone.partition_id) if each.name == name]
