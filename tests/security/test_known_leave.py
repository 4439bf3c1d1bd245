# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands with a known credential are sent at once. After a refusal they get a new one, as others
do."""

from __future__ import annotations

import time

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import IntegrityError, PermissionDenied
from pyosd.security.permissions import needs_of
from pyosd.wire.capability import JOB_RIGHTS, Permission, SecurityMethod
from pyosd.wire.cdb import Request
from tests.security.scripted import CHECK, NONCE, Answer, Good, Refused, Scripted, be, mac
from tests.security.test_signing import (
    ALLDATA,
    CAPKEY,
    CMDRSP,
    JOB,
    OBJ,
    STARTED,
    UNPROVEN,
    Counted,
    key_of,
    plain,
    target,
    token_page,
)

WRITE = rq.write(OBJ, 0, b"abc")


def known(
    method: SecurityMethod, *answers: Answer, asked: Request = WRITE
) -> tuple[Commands, Scripted, Counted]:
    """A target with a known credential for the request, and a known token."""
    first = [token_page(), plain()] if method is CAPKEY else [Good()]
    osd, scripted, source = target(method, *first, *answers)
    osd.call(asked)
    scripted.sent.clear()
    source.asked.clear()
    return osd, scripted, source


@pytest.mark.parametrize("method", [CAPKEY, CMDRSP, ALLDATA])
def test_nobody_is_asked_twice(method: SecurityMethod) -> None:
    good: Answer = plain() if method is CAPKEY else Good()
    osd, scripted, source = known(method, good, good)
    osd.call(WRITE)
    osd.call(WRITE)
    first, second = scripted.sent
    assert not source.asked and first.cdb[80:184] == second.cdb[80:184]
    assert (first.cdb[NONCE] == second.cdb[NONCE]) is (method is CAPKEY)


def test_what_has_expired_is_asked_for_again() -> None:
    osd, _, source = known(CMDRSP, Good())
    grant = osd.signer.kept(needs_of(WRITE)[0])
    assert grant
    grant.until = 0.0
    osd.call(WRITE)
    assert source.asked == [*needs_of(WRITE)]


@pytest.mark.parametrize("refusal", [Refused(0x24, 5), Refused(0x24, 0, 140), UNPROVEN])
def test_known_leave_that_is_refused_is_renewed(refusal: Refused) -> None:
    osd, scripted, source = known(CMDRSP, refusal, Good(), Good())
    osd.call(WRITE)
    osd.call(WRITE)
    first, second, third = scripted.sent
    assert len(source.taken_back) == 1 and source.asked == [*needs_of(WRITE)]
    assert first.cdb[80:184] != second.cdb[80:184] == third.cdb[80:184]
    assert (first.cdb[NONCE] == second.cdb[NONCE]) is (refusal is UNPROVEN)


def test_known_leave_and_a_command_that_was_acted_upon_after_all() -> None:
    osd, scripted, _ = known(CMDRSP, UNPROVEN, Refused(0x24, 6))
    with pytest.raises(IntegrityError, match="unknown"):
        osd.call(WRITE)
    assert len(scripted.sent) == 2


def test_known_leave_and_a_refusal_that_nothing_mends() -> None:
    osd, scripted, source = known(CMDRSP, Refused(0x24, 0, 129))
    with pytest.raises(PermissionDenied, match="CDB byte 129"):
        osd.call(WRITE)
    assert len(scripted.sent) == 1 and not source.asked


def test_known_leave_and_the_targets_clock() -> None:
    clock = int(time.time() * 1000) + 3_600_000
    osd, scripted, _ = known(CMDRSP, Refused(0x24, 7, clock=clock), Good())
    osd.call(WRITE)
    assert 0 <= be(scripted.sent[1].cdb[NONCE], 0, 6) - clock < 30_000


def test_a_known_token_of_before_a_restart() -> None:
    osd, scripted, source = known(CAPKEY, UNPROVEN, token_page(b"y" * 16), plain())
    osd.call(WRITE)
    assert scripted.sent[-1].cdb[CHECK] == mac(key_of(scripted.sent[-1]), b"y" * 16)
    assert not source.taken_back


def test_known_leave_gives_way_to_the_jobs() -> None:
    """An id that was a common object's is a job's surrogate, and then is again what it was."""
    read = rq.read(JOB, 0, 3)
    osd, scripted, _ = known(CMDRSP, *[Good(b"abc")] * 3, asked=read)
    osd.signer.learn_job(JOB, needs_of(STARTED)[0])
    osd.call(read)
    osd.signer.forget_job(JOB)
    osd.call(read)
    rights = [Permission(be(each.cdb, 129, 2)) for each in scripted.sent]
    assert rights == [Permission.FUN_EXE | JOB_RIGHTS, Permission.READ]
