# SPDX-License-Identifier: GPL-2.0-or-later
"""A zone has the same border in a sandbox and at a client: the same calls of one script are refused
in a job and with ``osd exec --local``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyosd import ALL, AttributeId, AttributeValue, ObjectRef, Page, Target, ref

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

PYOSD = Path(__file__).resolve().parents[2] / "pyosd"

SCRIPT = """
import osd

names = osd.args
ids = {name: tuple(pair) for name, pair in names.items()}
u = {name: osd.userobject(*pair) for name, pair in ids.items()}
own, other = osd.partition(ids["member"][0]), osd.partition(ids["elsewhere"][0])
group, other_group = osd.collection(*ids["group"]), osd.collection(*ids["other_group"])
objects = osd.collection(own.partition_id, 0x1000)

attempts = {}
for name in ("member", "bystander", "elsewhere"):
    one = u[name]
    attempts |= {
        f"{name} exists": one.exists,
        f"{name} read": lambda one=one: one.data.read(4),
        f"{name} read all": lambda one=one: one.data.read(),
        f"{name} write": lambda one=one: one.data.write(b"data"),
        f"{name} length": one.length,
        f"{name} map": lambda one=one: bytes(one.data.map()),
        f"{name} grep": lambda one=one: list(one.grep("data")),
        f"{name} getattr": lambda one=one: one.getattr([(10, 1)]),
        f"{name} setattr": lambda one=one: one.setattr([(10, 2, "x")]),
        f"{name} membership": lambda one=one: one.setattr([(4, 9, b"")]),
        f"{name} security": lambda one=one: one.setattr([(5, 2, b"x")]),
        f"{name} control": lambda one=one: one.setattr([(0x20000003, 1, b"x")]),
        f"{name} attributes": lambda one=one: list(one.attributes(10)),
        f"{name} add": lambda one=one: one.fetch_and_add(11, 1),
        f"{name} swap": lambda one=one: one.compare_and_swap(11, 2, "", ""),
        f"{name} clear": lambda one=one: one.clear(0, 1),
        f"{name} punch": lambda one=one: one.punch(0, 0),
        f"{name} truncate": lambda one=one: one.data.truncate(8),
        f"{name} append": lambda one=one: one.data.append(b""),
        f"{name} flush": one.flush,
    }
for name, place in (("own", own), ("other", other)):
    attempts |= {
        f"{name} list": lambda place=place: list(place)[:0],
        f"{name} collections": lambda place=place: list(place.collections())[:0],
        f"{name} query": lambda place=place: len(list(place.query(osd.attr(10, 1) == "one"))),
        f"{name} create": lambda place=place: osd.userobject(place.partition_id).create().remove(),
        f"{name} group": lambda place=place: osd.collection(place.partition_id).create().remove(),
        f"{name} setattr": lambda place=place: place.setattr([(0x30010000, 1, b"")]),
        f"{name} exists": place.exists,
    }
for name, them in (("group", group), ("other group", other_group), ("objects", objects)):
    attempts |= {
        f"{name} list": lambda them=them: list(them)[:0],
        f"{name} query": lambda them=them: len(list(them.query(osd.attr(10, 1) == "one"))),
        f"{name} setattr": lambda them=them: them.setattr([(0x60010000, 1, "x")]),
        f"{name} getattr": lambda them=them: them.getattr([(0x60010000, 2)]),
        f"{name} add": lambda them=them: them.add(u["member"]),
        f"{name} exists": them.exists,
    }
attempts |= {
    "drop": lambda: (group.drop(u["bystander"])),
    "partitions": lambda: len(list(osd.root())) > 0,
    "new partition": lambda: osd.partition().create().remove(),
    "remove partition": lambda: osd.partition(0x7777777).remove(),
    "remove elsewhere": osd.userobject(other.partition_id, 0x7777777).remove,
    "remove beside it": osd.userobject(own.partition_id, 0x7777777).remove,
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "allowed")
    except osd.OSDError as error:
        print(name, type(error).__name__)
"""


@pytest.fixture
def place(target: Target) -> dict[str, ObjectRef]:
    """Two partitions: a member and a bystander of a collection in one, an object in the other."""
    own, other = target.create_partition(), target.create_partition()
    group, other_group = target.create_collection(own), target.create_collection(other)
    made = {name: target.create(pid) for name, pid in (("member", own), ("bystander", own))}
    made["elsewhere"] = target.create(other)
    for each in made.values():
        target.write(each, 0, b"some data")
        target.set_attributes(each, [AttributeValue(10, 1, b"one")])
    joined = AttributeValue(Page.USER_COLLECTIONS, 1, group.object_id.to_bytes(8, "big"))
    target.set_attributes(made["member"], [joined])
    return made | {"group": group, "other_group": other_group, "own": ref(own)}


def run_here(url: str, zone: ObjectRef, arguments: str, folder: Path) -> str:
    """The script at a client, package osd first on its path, as in `osd exec --local`."""
    (folder / "script.py").write_text(SCRIPT)
    starter = (
        f"import runpy, sys; sys.path.insert(0, {str(PYOSD.parent)!r}); import pyosd.osd as osd;"
        f"sys.modules['osd'] = osd; runpy.run_path({str(folder / 'script.py')!r})"
    )
    environment = dict(os.environ, IOSD_TARGET=url, IOSD_ZONE=str(zone), IOSD_ARGS=arguments)
    done = subprocess.run(
        [sys.executable, "-c", starter],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("zone", ["root", "own", "group", "member"])
def test_both_ends_refuse_the_same(
    target: Target, place: dict[str, ObjectRef], osd_url: str, zone: str, tmp_path: Path
) -> None:
    address = ref() if zone == "root" else place[zone]
    pairs = {name: [each.partition_id, each.object_id] for name, each in place.items()}
    here = run_here(osd_url, address, json.dumps(pairs), tmp_path)
    job = target.exec(SCRIPT, zone=address, args=pairs)
    job.wait(30)
    there = bytes(target.read(job.id, 0, 1 << 20)).decode()
    assert job.status().state.name == "COMPLETED", there
    refusals = [line for line in there.splitlines() if line.endswith(" PermissionDenied")]
    assert len(refusals) > {"root": 5, "own": 30, "group": 50, "member": 60}[zone]

    assert here.splitlines() == there.splitlines()


ATTACK = """
import _osdcore, osd, struct

member, beside, group = osd.args["member"], osd.args["bystander"], osd.args["group"]
pid, everything = member[0], 0x1000
entry = struct.pack(">HHIIH", 0, 12 + 3, 10, 1, 3) + b"one" + bytes(2)
lists = [b"", bytes(3), bytes(4), b"\\1\\0\\0\\0" + entry, b"\\2\\0\\0\\0" + entry, b"\\xff" * 4096,
         b"\\1\\0\\0\\0" + struct.pack(">HHIIH", 0, 65535, 10, 1, 65535), b"\\1\\0\\0\\0" + entry * 5000,
         b"\\1\\0\\0\\0" + struct.pack(">HHIIHH", 0, 12, 0x30000001, 9, 0, 0)]
words = [0, 1, (1 << 63), (1 << 64) - 1, 10 << 32 | 1, 5 << 32 | 2, 0x20000003 << 32 | 1]
bodies = [b"", b"one", bytes(70000), bytes(1 << 20)]
shown, calls = set(), 0

def attempt(*call):
    global calls
    calls += 1
    try:
        return _osdcore.call(*call)
    except (osd.OSDError, ValueError):
        return None

for ids in (beside, group, [pid, 0], [pid, everything], [pid, (1 << 64) - 1], [0, 0]):
    for query in lists:
        for a in words[:4]:
            answer = attempt(29, *ids, a, 0, query)
            if answer:
                shown |= {oid for (oid,) in struct.iter_unpack(">Q", answer[2])}
    for a in words:
        for b in words[:4] + [3]:
            for body in bodies:
                assert ids == group or attempt(30, *ids, a, b, body) is None
            assert attempt(31, *ids, a, b) is None
print(calls, shown <= {member[1]})
"""


def test_raw_calls_end_at_the_zone(target: Target, place: dict[str, ObjectRef]) -> None:
    """A script that goes past package osd gets no further."""
    pairs = {name: [each.partition_id, each.object_id] for name, each in place.items()}
    before = target.get_attributes(place["bystander"], [AttributeId(10, ALL)])
    job = target.exec(ATTACK, zone=place["group"], args=pairs)
    assert job.wait(60).state.name == "COMPLETED", job.traceback()
    calls, contained = bytes(target.read(job.id, 0, 100)).split()
    assert int(calls) > 1000 and contained == b"True"
    assert target.get_attributes(place["bystander"], [AttributeId(10, ALL)]) == before


def test_the_suite_as_a_job(target: Target) -> None:
    """Guarantees for scripts (tests/sandbox/osd_suite.py), with the target's own proxies."""
    suite = Path(__file__).resolve().parents[1] / "sandbox/osd_suite.py"
    for pid in target.list_partitions():  # the suite wants to make its own
        if pid < 0x7FFF_FFFF_0000_0000:
            target.remove_partition(pid, contents=True)
    job = target.exec(suite.read_text(), zone=ref(), args=["one", "two"])
    assert job.wait(60).state.name == "COMPLETED", job.traceback()
    assert job.result()["checks"] > 10
