# SPDX-License-Identifier: GPL-2.0-or-later
"""A stock tgtd and the hardened one, on trial for what the first dies of.

Lives here: how one is started, attacked and judged.  Not here: the attacks (test_hardened_pdus.py,
test_hardened_sessions.py).
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

import pyosd
from iosd_host.serve.tgtd import Tgtd
from pyosd import requests as rq
from pyosd.wire.cdb import Request, encode
from tests.e2e.raw_iscsi import FINAL, WRITE
from tests.tgtd import ANSWER_S, NOP_IN, Attacker, Daemon

# Releases with these defects; later releases were not tested.
DEFECTIVE = ((1, 0, 85), (1, 0, 97))
SHORT_S = 0.5  # to see that no answer comes
STOCK_S = 1.0  # for an answer of a daemon that is to be seen looping: one that is only slow counts as such
PROTOCOL_ERROR, NOT_SUPPORTED, OUT_OF_RESOURCES, INVALID_FIELD = 4, 5, 0xA, 9
INQUIRY = bytes([0x12, 0, 0, 0, 96, 0])
REPORT_LUNS = bytes([0xA0, 0, 0, 0, 0, 0, 0, 0, 1, 0])
GOOD, CHECK_CONDITION, TASK_ABORTED = 0, 2, 0x40


def cdb_of(request: Request) -> bytes:
    return bytes(encode(request)[0].cdb)


LIST = cdb_of(rq.list_objects())
FORMAT = cdb_of(rq.format_osd())


class Trial:
    """One daemon of one kind; `judge` says whether it does as it should."""

    def __init__(self, tgtd: Tgtd) -> None:
        self.tgtd, self.hardened = tgtd, tgtd.hardened
        self.stack = contextlib.ExitStack()
        self.patience = ANSWER_S

    def daemon(self, **parameters: str) -> Daemon:
        return self.stack.enter_context(Daemon(self.tgtd, **parameters))

    def session(self, daemon: Daemon, /, **keys: str) -> Attacker:
        return self.stack.enter_context(Attacker(daemon, self.patience, **keys))

    def offends(self, session: Attacker) -> None:
        """What follows a stock daemon may not answer at all, which is a defect that shows soon."""
        session.socket.settimeout(self.patience if self.hardened else SHORT_S)

    @property
    def version(self) -> tuple[int, ...]:
        """Of tgt."""
        return tuple(map(int, re.findall(r"\d+", self.tgtd.version)[:3]))

    def judge(self, defect: bool, mended: tuple[int, ...] | None = None) -> None:
        """Args: defect: whether it was seen.  mended: the first release without it."""
        if self.hardened:
            assert not defect
            return
        version = self.version
        if not DEFECTIVE[0] <= version <= DEFECTIVE[1]:
            pytest.skip(f"not known of tgt {self.tgtd.version}; seen: {defect}")
        assert defect == (mended is None or version < mended), (
            f"tgt {self.tgtd.version} is known to have this defect, and has not shown it"
        )

    def bears(self, attack: Callable[[Daemon], object], **parameters: str) -> None:
        """The attack says what a sound daemon answers, which serves others afterwards.  A stock one
        answers otherwise, loops or dies; of what it does to its memory perhaps not at once."""
        if not self.hardened:
            self.patience = STOCK_S
        for _ in range(1 if self.hardened else 5):
            daemon = self.daemon(**parameters)
            try:
                attack(daemon)
                defect = not daemon.serves(ANSWER_S if self.hardened else 2.0)
            except (AssertionError, OSError, subprocess.TimeoutExpired):
                if self.hardened:
                    raise
                defect = True
            if defect:
                break
        self.judge(defect)


def write_of(length: int, session: Attacker, **more: object) -> None:
    """A WRITE to an object that is not there; which the daemon learns when it has the data."""
    cdb = cdb_of(rq.write(pyosd.types.ref(0x1_0000, 0x1_0000), 0, bytes(length)))
    session.osd(cdb, FINAL | WRITE, length=length, **more)


def taken(session: Attacker) -> None:
    """All that was sent has been read: a ping behind it is answered, past commands that wait."""
    session.ping(250)
    assert session.answer()[0][0] == NOP_IN


@contextlib.contextmanager
def recorded(session: Attacker) -> Iterator[bytearray]:
    """Bytes sent meanwhile are received only here."""
    sent = bytearray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "socket", Recorder(sent))
        yield sent


class Recorder:
    """A socket that keeps what it is to send."""

    def __init__(self, sent: bytearray) -> None:
        self.sent = sent

    def sendall(self, data: bytes) -> None:
        self.sent += data


def held(trial: Trial, daemon: Daemon) -> Attacker:
    """A session with a command, 100, that runs until `gate` is gone."""
    daemon.gate.touch()
    session = trial.session(daemon).ready()
    session.osd(FORMAT, tag=100)
    taken(session)  # before what other sessions send
    return session
