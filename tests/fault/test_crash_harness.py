# SPDX-License-Identifier: GPL-2.0-or-later
"""kill -9 of the target's core under load, and of its recovery; nothing acknowledged may be lost.

The proof that this can fail: the same clients on a store that acknowledges too early.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

import pytest

from tests.conftest import MakeHarness
from tests.harness import Harness, program
from tests.oracle import Clients
from tests.processes import long_lived

CLIENTS = 5
ANSWERS = 200
"""Commands a round sees answered, at least."""
ROUNDS_TO_FAIL = 10

pytestmark = pytest.mark.crash


def work_and_kill(harness: Harness, clients: Clients, rng: random.Random) -> int:
    """One round, at an instant of the seed's choice; the store is closed afterwards."""
    answers, spin = ANSWERS + rng.randrange(200), rng.random() * 0.004
    # The clients write to the harness's pipe themselves: only the signal comes from here.
    kill = lambda: harness.transport.process.send_signal(signal.SIGKILL)  # noqa: E731
    answered = clients.work(lambda number: harness.osd, kill, answers, spin)
    harness.kill()
    return answered


class Store:
    """The store all rounds work on, and who works."""

    def __init__(self, folder: Path, seed: int, options: Mapping[str, object]) -> None:
        self.rng = random.Random(seed)
        settings = {"dir": folder / "store"} | dict(options)
        self.harness = Harness(program(), settings, folder / "log")
        self.clients = Clients(self.harness.osd, CLIENTS, seed, folder)


@pytest.fixture(scope="module", params=["plain", "checksums"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> Iterator[Store]:
    """With checksums every READ of the oracle is compared with them: damage would be a loss."""
    options = {"checksums": "on", "verify": "always"} if request.param == "checksums" else {}
    made = Store(tmp_path_factory.mktemp("crash"), seed, options)
    long_lived.add(made.harness.pid)
    yield made
    made.harness.finish()


def test_kill_9(store: Store, seed: int, crash_round: int) -> None:
    answered = work_and_kill(store.harness, store.clients, store.rng)
    print(f"seed {seed}, round {crash_round}: killed after {answered} answers")
    assert answered >= ANSWERS
    if store.rng.random() < 0.3:
        kill_recovery(store)
    store.harness.start()
    long_lived.add(store.harness.pid)
    assert store.clients.losses(store.harness.osd) == []


def kill_recovery(store: Store) -> None:
    """Start, and kill before anything could be asked."""
    process = store.harness.spawn()
    until = perf_counter() + store.rng.random() * 0.05
    while perf_counter() < until:
        pass
    process.kill()
    process.communicate()


def test_the_oracle_can_fail(make_harness: MakeHarness, tmp_path: Path, seed: int) -> None:
    """With DB_TXN_NOSYNC acknowledged commits sit in memory that kill -9 takes along."""
    for attempt in range(ROUNDS_TO_FAIL):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        harness = make_harness(dir=folder / "store", unsafe_nosync=1)
        rng = random.Random(seed + attempt)
        clients = Clients(harness.osd, CLIENTS, seed + attempt, folder)
        work_and_kill(harness, clients, rng)
        harness.start()
        try:
            if clients.losses(harness.osd):
                return
        except Exception as error:
            print(f"lost so much that looking fails: {error}")
            return
    pytest.fail(f"no loss seen in {ROUNDS_TO_FAIL} rounds without safe commits")
