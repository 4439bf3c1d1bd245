# SPDX-License-Identifier: GPL-2.0-or-later
"""Caps of signers (docs/functions.md, "Caps of a signer")."""

from __future__ import annotations

import pytest

from pyosd.errors import OSDError
from pyosd.functions import Functions
from pyosd.types import ROOT, ref
from pyosd.wire.exec_params import ExecFlag, ExecParams, HomeCost, Limits
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, await_sandboxes
from tests.exec.signing import Key, MakeKey, Serve, Signing
from tests.exec.test_functions import FUNCTIONS, READ, WRITE, call, refused, result

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

CAPS, INACTIVE = 0x8029, 0x8017
CODE = b"def main(args):\n    return 'signed'\n"
SLEEPS = b"import time\ndef main(args):\n    time.sleep(600)\n"


def line(key: Key, caps: str = "") -> str:
    return f"ann {caps + ' ' if caps else ''}{key.public}"


def put(s: Signing, key: Key, name: str, code: bytes = CODE, **limits: object) -> Functions:
    functions = Functions(s.target, FUNCTIONS)
    functions.put(code, name=name, limits=Limits(**limits), sign_with=key.path)  # type: ignore[arg-type]
    return functions


def test_the_manifest_is_within_the_caps(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    caps = 'iosd-access="read",iosd-wall="2s",iosd-cpu="1500ms",iosd-memory="64MiB"'
    s = signing("signed", line(ed, caps))
    s.refuse(s.put_signed(ed, access=WRITE), CAPS, "iosd-access")
    s.target.activate_function(s.put_signed(ed, access=READ, alias=b"reads"))
    for limits, word in (({"wall": 3}, "wall"), ({"cpu": 2}, "cpu"), ({"mem": "65MiB"}, "memory")):
        before = len(s.serving.text())
        with pytest.raises(OSDError) as caught:
            put(s, ed, "more", **limits)
        assert (caught.value.asc << 8 | caught.value.ascq) == CAPS
        s.logged(f"iosd-{word}", before)
    functions = put(s, ed, "less", wall=2, cpu=1.5, mem="64MiB")
    assert functions.show("less").signer == "ann"


def test_engines(signing: Serve, key: MakeKey) -> None:
    ed, p256 = key("ed25519"), key("p256")
    s = signing("signed", line(ed, 'iosd-engines="wasm,java"'), f"bob {p256.public}")
    s.refuse(s.put_signed(ed), CAPS, "iosd-engines")
    s.target.activate_function(s.put_signed(p256))


def test_a_call_gets_the_cap_where_the_manifest_has_no_limit(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", line(ed, 'iosd-wall="300ms",iosd-memory="48MiB"'))
    put(s, ed, "sleeps", SLEEPS)
    reply = call(s.target, s.zone, "sleeps", limits=Limits(wall=30))
    assert reply.error is not None and reply.error.sense is not None
    assert reply.error.sense.command_information == 301
    job = Functions(s.target, FUNCTIONS).submit("sleeps", zone=s.zone)
    status = job.wait(WAIT_S)
    assert (status.state, status.signer) == (JobState.TIMEOUT, "ann")
    assert status.limits.mem == 48 << 20 and status.limits.wall == pytest.approx(0.3)


def test_zones(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", line(ed))
    other = ref(s.target.create_partition())
    s.reload("signed", [line(ed, f'iosd-zones="{int(s.zone.partition_id):#x}"')])
    obj = s.target.create_and_write(s.zone.partition_id, b"x")
    reads = s.put_signed(ed, access=READ, alias=b"reads")
    s.target.activate_function(reads)
    s.target.activate_function(s.put_signed(ed, alias=b"alone"))
    for zone in (s.zone, obj):
        assert result(s.target, call(s.target, zone, "reads")) == "signed"
    for zone in (other, ROOT):
        refused(s.target, zone, reads.object_id, CAPS)
        assert result(s.target, call(s.target, zone, "alone")) == "signed", "it has no access"
    script = "import osd\nosd.result(osd.call('reads'))\n"
    assert s.target.exec(script, zone=s.zone).result() == "signed"
    status = s.target.exec(script, zone=other).wait(WAIT_S)
    assert status.state is JobState.FAILED and "PermissionDenied" in status.message


def test_caps_hold_for_a_job_that_is_run_again(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", line(ed))
    other = ref(s.target.create_partition())
    fails = b"def main(args):\n    raise KeyError(args)\n"
    function = s.put_signed(ed, fails, access=READ, alias=b"fails")
    s.target.activate_function(function)
    old = Functions(s.target, FUNCTIONS).submit("fails", zone=s.zone)
    assert old.wait(WAIT_S).state is JobState.FAILED
    zones = f'iosd-zones="{int(s.zone.partition_id):#x}"'
    s.reload("signed", [line(ed, f'{zones},iosd-memory="48MiB"')])
    again = ExecParams(predecessor=old.id, flags=ExecFlag.HOLD)
    with pytest.raises(OSDError) as caught:
        s.target.exec_code(other, b"", again)
    assert (caught.value.asc << 8 | caught.value.ascq) == CAPS
    status = s.target.retry(old, limits=Limits()).wait(WAIT_S)
    assert (status.state, status.signer) == (JobState.FAILED, "ann")
    assert status.limits.mem == 48 << 20
    s.target.activate_function(function, deactivate=True)
    with pytest.raises(OSDError) as caught:
        s.target.retry(old)
    assert (caught.value.asc << 8 | caught.value.ascq) == INACTIVE


def test_a_job_that_is_run_again_keeps_its_access_class(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", line(ed))
    obj = s.target.create_and_write(s.zone.partition_id, b"data")
    reads = b"import osd\ndef main(args):\n    return osd.zone.data.read().decode()\n"
    s.target.activate_function(s.put_signed(ed, reads, alias=b"reads"))
    old = Functions(s.target, FUNCTIONS).submit("reads", zone=obj)
    assert old.wait(WAIT_S).state is JobState.FAILED, "it has none"
    with pytest.raises(OSDError) as caught:
        s.target.exec_code(obj, b"", ExecParams(predecessor=old.id, home=HomeCost(1.0, 1)))
    assert (caught.value.asc << 8 | caught.value.ascq) == 0x2400


def test_a_reload_changes_caps(signing: Serve, key: MakeKey) -> None:
    """What exceeds them is stored again; other calls have the new ones at once."""
    ed = key("ed25519")
    s = signing("signed", line(ed))
    writes, reads = s.put_signed(ed, access=WRITE), s.put_signed(ed, access=READ)
    for obj in (writes, reads):
        s.target.activate_function(obj)
    capped = f'iosd-access="read",iosd-zones="{int(s.zone.partition_id)}"'
    s.reload("signed", [line(ed, capped)])
    assert (s.active(writes), s.active(reads)) == (False, True)
    refused(s.target, ROOT, reads.object_id, CAPS)
    s.restart_tgtd()
    assert (s.active(writes), s.active(reads)) == (False, True)
    refused(s.target, ROOT, reads.object_id, CAPS)
    await_sandboxes(s.target)
    s.reload("signed", [line(ed)])
    assert result(s.target, call(s.target, ROOT, reads.object_id)) == "signed"
    s.target.activate_function(writes)


@pytest.mark.parametrize(
    "caps",
    [
        'iosd-wall="10"',
        'iosd-wall="0s"',
        'iosd-wall="-1s"',
        'iosd-cpu="99999999999999999999h"',
        'iosd-memory="1TB"',
        "iosd-memory=1MiB",
        'iosd-memory="1MiB",iosd-memory="1MiB"',
        'iosd-access="all"',
        'iosd-zones="0x0"',
        'iosd-zones="here"',
        f'iosd-zones="{",".join(map(str, range(1, 18)))}"',
        'iosd-speed="1"',
        'iosd-="1"',
        f'iosd-engines="{"x" * 64}"',
        'iosd-engines="cobol"',
    ],
)
def test_wrong_caps_do_not_load(signing: Serve, key: MakeKey, caps: str) -> None:
    ed = key("ed25519")
    s = signing("signed", line(ed))
    obj = s.put_signed(ed)
    s.target.activate_function(obj)
    told = s.reload("signed", [line(ed, caps)], code=78)
    assert "line 1 of the list of signers" in told
    assert s.active(obj)
