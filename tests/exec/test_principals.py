# SPDX-License-Identifier: GPL-2.0-or-later
"""The principal of a job: the CHAP user if the daemon knows it, else the address, never the
initiator's own claim.  With the hardened tgtd and with a stock one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import pyosd
from iosd_host.common import paths
from iosd_host.serve.tgtd import find_tgtd
from pyosd import Chap, LoginRejected
from pyosd.errors import ChangeRefused
from pyosd.functions import Contract, Functions, FunctionStage, Hook, HookEvent, OutputSize
from pyosd.types import AttributeValue, ref
from pyosd.wire.attributes import Page
from tests.e2e.raw_iscsi import RawSession
from tests.exec.conftest import WAIT_S, await_sandboxes
from tests.relay import from_address
from tests.serving import Serving
from tests.waiting import until

VICTIM = "127.0.0.7"
FORGED = "iqn.2026-11.org.iosd:mallory"
FORGERIES = {
    "a line": f"{FORGED}\n        IP Address: {VICTIM}",
    "its own block": f"{FORGED}\n        IP Address: {VICTIM}\nSession: 9\n    Connection: 0\n"
    "        Initiator: iqn.2026-11.org.iosd:none",
    "another session's block": f"{FORGED}\n        IP Address: 127.0.0.1\nSession: OTHER\n"
    f"    Connection: 0\n        Initiator: {FORGED}\n        IP Address: {VICTIM}\nSession: 999\n"
    "    Connection: 0\n        Initiator: x",
}


@pytest.fixture(scope="module", params=["hardened", "stock"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    try:
        tgtd = find_tgtd(found)
    except paths.MissingComponent as error:
        pytest.skip(str(error))
    if found == "stock" and tgtd.hardened:
        pytest.skip("the distribution's tgtd is one of ours")
    return found


@pytest.fixture(scope="module")
def served(kind: str) -> Iterator[Serving]:
    allow = ("--allow", "127.0.0.1", "--allow", VICTIM)
    with Serving("--tgtd", kind, "--isolation", "best", "--reuse", "trusted", *allow) as it:
        yield it


def principal(served: Serving, target: pyosd.Target, partition: int) -> str:
    """By the log: what the target holds a job of this session to belong to."""
    job = target.exec("pass", zone=ref(partition))
    assert job.wait(WAIT_S).exit_code == 0
    line = re.compile(
        rf"({job.id.partition_id:#x}/{job.id.object_id:#x}).* accepted,.*principal '([^']*)'"
    )
    until(lambda: line.search(served.text()))
    found = line.search(served.text())
    assert found
    return found[2]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_address_cannot_be_forged(served: Serving, kind: str, forgery: str) -> None:
    """Text after a line feed in a name was taken for tgtd's own text."""
    with served.connect() as honest, from_address(served.url, VICTIM) as url:
        partition = honest.create_partition()
        with pyosd.connect(url) as victim:
            assert principal(served, victim, partition) == f"addr:{VICTIM}"
        with RawSession(served.url) as last:
            name = FORGERIES[forgery].replace("OTHER", str(last.number + 1))
        if kind == "hardened":
            with pytest.raises(LoginRejected):
                served.connect(initiator=name)
            return
        with (
            served.connect(initiator=FORGED) as second,
            served.connect(initiator=name) as mallory,
        ):
            for session in (second, mallory, honest):
                assert principal(served, session, partition) == "addr:127.0.0.1"


def test_a_name_with_control_characters_is_not_logged_as_one(served: Serving, kind: str) -> None:
    if kind == "hardened":
        pytest.skip("the login is refused: tests/e2e/test_hardened_names.py")
    name = f"{FORGED}\x1b[2J\nerror: everything is lost"
    with served.connect(initiator=name) as mallory:
        taken = mallory.create_partition()
        with pytest.raises(pyosd.Conflict):
            mallory.create_partition(taken)  # such a refusal is logged
    until(lambda: f"({taken:#x}/0x0)" in served.text())
    assert "\x1b" not in served.text() and "\nerror: everything" not in served.text()


# ---- users -----------------------------------------------------------------------------------------


ACCOUNTS = """
[[incoming]]
user = "ada"
secret = "correct horse battery"
[[incoming]]
user = "bob"
secret = "a second secret"
[outgoing]
user = "disk"
secret = "the other secret"
"""
ADA, BOB = Chap("ada", "correct horse battery"), Chap("bob", "a second secret")
MUTUAL = Chap("ada", "correct horse battery", "disk", "the other secret")


@pytest.fixture(scope="module")
def guarded(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("chap")
    accounts, config = folder / "accounts", folder / "iosd.toml"
    accounts.write_text(ACCOUNTS)
    accounts.chmod(0o600)
    config.write_text('[pools.default]\nreuse = "verified"\n[pools.ada.access]\nusers = ["ada"]\n')
    with Serving(
        *("--tgtd", kind, "--isolation", "best", "--slots", "1"),
        *("--chap-file", str(accounts), "--config", str(config)),
    ) as it:
        yield it


def test_the_user_is_the_principal(guarded: Serving, kind: str) -> None:
    """The one that this session has proven, not another of the target's accounts; nor is it by the address,
    which all have in common."""
    with (
        guarded.connect(chap=ADA) as ada,
        guarded.connect(chap=BOB) as bob,
        guarded.connect(chap=MUTUAL) as mutual,
    ):
        partition = ada.create_partition()
        found = [principal(guarded, each, partition) for each in (ada, bob, mutual)]
    if kind == "hardened":
        assert found == ["chap:ada", "chap:bob", "chap:ada"]
    else:
        assert found == ["addr:127.0.0.1"] * 3


def test_pools_keys_and_reuse_are_by_user(guarded: Serving, kind: str) -> None:
    if kind == "stock":
        pytest.skip("a stock tgtd does not report users")
    with guarded.connect(chap=ADA) as ada, guarded.connect(chap=BOB) as bob:
        zone = ref(ada.create_partition())
        assert ada.exec("pass", zone=zone, pool="ada").wait(WAIT_S).exit_code == 0
        with pytest.raises(pyosd.PermissionDenied, match="80/16"):
            bob.exec("pass", zone=zone, pool="ada")
        first = ada.exec("pass", zone=zone, key="once")
        assert ada.exec("pass", zone=zone, key="once").id == first.id
        assert bob.exec("pass", zone=zone, key="once").id != first.id

        def sandboxes(user: pyosd.Target) -> int:
            return user.exec("pass", zone=zone).wait(WAIT_S).sandbox

        # One that is cleaned for too long ends: on a busy machine that happens.
        until(
            lambda: sandboxes(ada) == sandboxes(ada), "a proven name's sandbox takes its next job"
        )
        assert sandboxes(bob) != sandboxes(ada)


UPPER = """
import osd

def main(args):
    return osd.stage(args).data.upper()

def no(args):
    return "no"
"""


def test_a_pool_admits_the_user_who_attaches(guarded: Serving, kind: str) -> None:
    """Readers need not be users of the pool, and cannot lend its users' rights to their functions."""
    if kind == "stock":
        pytest.skip("a stock tgtd does not report users")
    contract = Contract(OutputSize.SAME)
    with guarded.connect(chap=ADA) as ada, guarded.connect(chap=BOB) as bob:
        partition = ada.create_partition(0x15)
        table = Functions(ada, partition)
        upper = table.put(
            UPPER, name="upper", pool="ada", contract=contract, methods=("main", "no")
        ).id
        mine, his = (ada.create_and_write(ada.create_partition(), b"text") for _ in range(2))
        for user, obj in ((ada, mine), (bob, his)):
            Functions(user, partition).attach(ref(obj.partition_id), [FunctionStage(upper)])
            Functions(user, partition).hook(obj, Hook(upper, HookEvent.SET, method="no"))
        for user in (ada, bob):
            assert bytes(user.read(mine, 0, 4)) == b"TEXT"
            with pytest.raises(pyosd.PermissionDenied, match="80/16"):
                user.read(his, 0, 4)
            with pytest.raises(ChangeRefused, match="no "):
                user.set_attributes(mine, [AttributeValue(Page.APPLICATION, 1, b"x")])
            with pytest.raises(pyosd.PermissionDenied, match="80/16"):
                user.set_attributes(his, [AttributeValue(Page.APPLICATION, 1, b"x")])
        Functions(ada, partition).attach(ref(his.partition_id), [FunctionStage(upper)])
        assert bytes(bob.read(his, 0, 4)) == b"TEXT"
    guarded.kill("tgtd")
    guarded.restarted()
    with guarded.connect(chap=BOB) as bob:
        await_sandboxes(bob)
        assert bytes(bob.read(mine, 0, 4)) == b"TEXT"
        for obj in (mine, his):
            bob.remove_partition(obj.partition_id, contents=True)
        bob.remove_partition(partition, contents=True)
