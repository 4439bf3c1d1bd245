# SPDX-License-Identifier: GPL-2.0-or-later
"""The permissions that each verb of `osd` needs, recorded while it runs: docs/permissions.md.

    python -m tests.secmgr.verbs >docs/permissions.md

Each verb runs against a target that demands credentials. The credentials that its commands request
make a row of the table.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

import pyosd.security.local_credential
from pyosd.cli import main
from pyosd.secmgr.names import names_of
from pyosd.secmgr.roles import ROLES
from pyosd.security.credentials import Credential
from pyosd.security.local_credential import LocalSource
from pyosd.types import FIRST_ID, JOBS_COLLECTION, ObjectRef, ObjectType
from pyosd.wire.capability import Permission
from tests.serving import Serving

# The words of each verb; names in capitals stand for what `Sample` made.
VERBS = (
    "part ls",
    "part stat PID",
    "part create",
    "part rm NEWPID --yes",
    "part check PID",
    "obj ls PID",
    "obj stat OID",
    "obj create PID",
    "obj read OID",
    "obj write OID FILE",
    "obj write PID FILE",
    "obj append OID FILE",
    "obj copy OID PID",
    "obj map OID",
    "obj find PID 'PAGE/1 >= 1'",
    "obj index PID",
    "obj attr ls OID",
    "obj attr set OID PAGE/1 x",
    "obj attr get OID PAGE/1",
    "obj rm OID",
    "ls /PID",
    "stat /PID/FILE",
    "find /PID",
    "du /PID",
    "cat /PID/FILE",
    "cp FILE osd:/PID/NEW",
    "cp osd:/PID/FILE LOCAL",
    "cp osd:/PID/FILE osd:/PID/NEW",
    "mkdir /PID/DIR",
    "mv /PID/NEW /PID/DIR",
    "rm -r -f /PID/DIR",
    "sync SOURCE osd:/PID",
    "obj read /PID/FILE",
    "put FILE PID",
    "get PID FOLDER",
    "col create PID",
    "col ls PID",
    "col add CID OTHER",
    "col members CID",
    "col rm CID --force",
    "exec SCRIPT --zone PID --rights read --wait",
    "exec SCRIPT --zone PID --partition PID --rights read --wait",
    "exec SCRIPT --zone PID --wait",
    "exec SCRIPT --zone OTHER --rights read --wait",
    "ps",
    "job status JOB",
    "job logs JOB",
    "job result JOB",
    "job inputs JOB",
    "job export --prov JOB",
    "job kill JOB",
    "job rm JOB",
    "cluster put FILE PID --copies 1 --targets TARGETS",
    "cluster ls PID --targets TARGETS",
    "cluster check PID --targets TARGETS",
    "cluster repair PID --targets TARGETS",
    "cluster rebalance PID --targets TARGETS",
    "pool ls",
    "target info",
)

HEAD = """\
# Permissions of each verb

A capability permits named operations on one object, or on all objects of a kind in a partition.
This table has the permissions that each verb of `osd` needs. A test records them while the verb
runs (`python -m tests.secmgr.verbs`). To give permissions, use
`osd acl add USER PERMISSION,... OBJECT` ([the security manager](secmgr.md)), or give a role.

- *objects* and *collections*: one, or all in a partition (`PID/OID`, `PID/*`).
- *jobs*: the collection of the partition's jobs (`PID/0x1001`). A user sees their own jobs through
  it.
- *zone*: the partition, for scripts alone (FUN_EXE and the scripts' own permissions).

The submitter of a job needs no further permission to follow and end it.

"""


def word_of(obj: ObjectRef, object_type: ObjectType, permissions: Permission) -> str:
    """The kind of an object, in the words of HEAD."""
    if object_type is ObjectType.COLLECTION and obj.object_id == JOBS_COLLECTION:
        return "jobs"
    if object_type is ObjectType.COLLECTION and 0 < obj.object_id < FIRST_ID:
        return f"collection {obj.object_id:x}h"
    if object_type is ObjectType.PARTITION and Permission.FUN_EXE in permissions:
        return "zone"
    words = {ObjectType.USER_OBJECT: "objects", ObjectType.COLLECTION: "collections"}
    return words.get(object_type, object_type.name.lower())


class Sample:
    """A served target with something of everything."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self.serving, self.folder = serving, folder
        (folder / "file").write_text("text")
        (folder / "script.py").write_text("print(1)\n")
        (folder / "targets.toml").write_text(f'[targets]\na = "{serving.url}"\n')
        self.names = {
            "FILE": str(folder / "file"),
            "FOLDER": str(folder / "out"),
            "SCRIPT": str(folder / "script.py"),
            "TARGETS": str(folder / "targets.toml"),
            "PAGE": "0x10000",
            "PID": "0x10000",
            "NEWPID": "0x20000",
            "SOURCE": str(folder / "source"),
            "LOCAL": str(folder / "local"),
            "/PID": "/0x10000",
            "osd:/PID": "osd:/0x10000",
        }
        self.names |= {
            f"{osd}/PID/{name}": f"{osd}/0x10000/{path}"
            for osd in ("", "osd:")
            for name, path in (("FILE", "stored"), ("NEW", "new"), ("DIR", "dir"))
        }
        (folder / "source").mkdir()
        (folder / "source" / "inside").write_text("text")
        self.run("part", "create", "0x10000")
        self.run("part", "create", "0x20000")
        self.names["OID"] = self.run("obj", "write", "0x10000", self.names["FILE"])
        self.names["OTHER"] = self.run("obj", "write", "0x10000", self.names["FILE"])
        self.names["CID"] = self.run("col", "create", "0x10000")
        self.names["JOB"] = self.run("exec", self.names["SCRIPT"], "--zone", "0x10000", "--no-wait")
        self.run("job", "wait", self.names["JOB"])
        self.run("cp", self.names["FILE"], "osd:/0x10000/stored")

    def run(self, *words: str) -> str:
        environment = os.environ | {"IOSD_TARGET": self.serving.url}
        done = CliRunner(env=environment).invoke(main, list(words))
        assert done.exit_code == 0, f"{words}: {done.output}"
        return done.stdout.strip()

    def needs(self, verb: str) -> list[tuple[str, ...]]:
        """The kinds of objects and the permissions that a verb asks for, in its order."""
        found: dict[tuple[str, ...], None] = {}
        original = LocalSource.credential

        def credential(
            source: LocalSource, obj: ObjectRef, object_type: ObjectType, permissions: Permission
        ) -> Credential:
            given = original(source, obj, object_type, permissions)
            found[word_of(obj, object_type, permissions), ", ".join(names_of(permissions))] = None
            return given

        words = [self.filled(word.strip("'")) for word in split(verb)]
        with mock.patch.object(
            pyosd.security.local_credential.LocalSource, "credential", credential
        ):
            self.run(*words)
        return list(found)

    def filled(self, word: str) -> str:
        """A word of a verb with what its names stand for."""
        if word in self.names:
            return self.names[word]
        return word.replace("PAGE", self.names["PAGE"])


def split(verb: str) -> list[str]:
    """Words; one in quotes is one."""
    outside, *rest = verb.split("'")
    return outside.split() + (rest[:1] if rest else [])


@contextlib.contextmanager
def sample() -> Iterator[Sample]:
    with (
        Serving("--security", "capkey", standard=True) as serving,
        tempfile.TemporaryDirectory(prefix="iosd-test-") as folder,
    ):
        yield Sample(serving, Path(folder))


def document(found: Sample) -> str:
    """docs/permissions.md."""
    lines = [HEAD + "| verb | on | permissions |", "|---|---|---|"]
    for verb in VERBS:
        shown = verb.replace("SCRIPT", "x.py")
        for kind, names in found.needs(verb):
            lines.append(f"| {f'`osd {shown}`' if shown else ''} | {kind} | {names} |")
            shown = ""
    lines += ["", "## Roles", "", "`osd acl add USER ROLE PID` makes these rules together.", ""]
    lines += ["| role | for | rules |", "|---|---|---|"]
    for name, role in ROLES.items():
        rules = "; ".join(f"{kind}: {', '.join(names_of(each))}" for kind, each in role.grants)
        lines.append(f"| `{name}` | {role.purpose} | {rules.replace('collection:', 'jobs:')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with sample() as made:
        print(document(made), end="")
