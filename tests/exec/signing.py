# SPDX-License-Identifier: GPL-2.0-or-later
"""Signed functions: keys of ssh-keygen, and a target with a policy and a list of signers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import pyosd
from iosd_host.common.paths import wasmtime_library
from pyosd.errors import OSDError
from pyosd.functions.manifest import ManifestNumber
from pyosd.security.function_signature import SIGNATURE, sign, statement
from pyosd.types import AttributeValue, ObjectRef, PartitionId
from pyosd.wire.attributes import Page
from tests import warm
from tests.harness import SOURCE
from tests.processes import long_lived
from tests.serving import Serving, arguments
from tests.waiting import until

FUNCTIONS = PartitionId(0x11)
UNSIGNED, BAD_SIGNATURE, BAD_SIGNER = 0x8020, 0x8021, 0x8022
SIGNER, FINGERPRINT = 0x11, 0x12
CODE = b"def main(args):\n    return 'signed'\n"
TYPES = {
    "ed25519": ("ed25519", ()),
    "p256": ("ecdsa", ("-b", "256")),
    "p384": ("ecdsa", ("-b", "384")),
    "rsa": ("rsa", ("-b", "2048")),
    "p521": ("ecdsa", ("-b", "521")),
    "small": ("rsa", ("-b", "1024")),
}


@dataclass
class Key:
    """A key pair of ssh-keygen."""

    path: Path

    @property
    def public(self) -> str:
        """Type and key, as a list of signers has them."""
        return " ".join(self.path.with_suffix(".pub").read_text().split()[:2])

    @property
    def fingerprint(self) -> str:
        command = ["ssh-keygen", "-l", "-f", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()[1]


def make_key(folder: Path, kind: str, name: str = "key") -> Key:
    """A key of a type; the same at each call."""
    path = folder / f"{kind}-{name}"
    if not path.exists():
        algorithm, words = TYPES[kind]
        command = ["ssh-keygen", "-q", "-t", algorithm, *words, "-N", "", "-f", str(path)]
        subprocess.run(command, check=True)
    return Key(path)


def replace(path: Path, text: str) -> None:
    """Write a file in one step: the target may still be about to read it after a SIGHUP."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


class Signing:
    """A target with a list of signers and a policy, both in files that a test changes."""

    def __init__(self, folder: Path, policy: str, lines: list[str]) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.file, self.list = folder / "iosd.toml", folder / "signers"
        self.configure(policy, lines)
        words = ["--config", str(self.file), *arguments()]
        if wasmtime_library() is not None:
            words += ["--pool", "w:engine=wasm,max=1"]
        self.serving = Serving(*words, environment={"IOSD_RUN": str(self.run)})
        long_lived.add(self.serving.process.pid)
        self.target = self.serving.connect()
        self.empty()

    def empty(self) -> None:
        """Have no functions, another zone, and a log that begins here."""
        if FUNCTIONS in self.target.list_partitions():
            self.target.remove_partition(FUNCTIONS, contents=True)
        self.target.create_partition(FUNCTIONS)
        self.zone = pyosd.ref(self.target.create_partition())
        self.begins = len(self.serving.text())

    def configure(self, policy: str, lines: list[str]) -> None:
        self.policy = policy
        replace(self.list, "".join(f"{line}\n" for line in lines))
        replace(
            self.file,
            f"[target]\nfunction_policy = '{policy}'\nfunction_signers = '{self.list}'\n",
        )

    def reload(self, policy: str, lines: list[str], code: int = 0) -> str:
        """osd config reload; returns what it prints."""
        self.configure(policy, lines)
        environment = {**os.environ, "IOSD_RUN": str(self.run)}
        done = warm.osd("config", "reload", environment=environment, folder=SOURCE)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def restart_tgtd(self) -> None:
        """A kill -9; its sessions are gone."""
        self.target.close()
        self.serving.kill("tgtd")
        self.serving.restarted()
        self.target = self.serving.connect()

    def stop(self) -> None:
        """End the target."""
        self.target.close()
        self.serving.stop()
        long_lived.discard(self.serving.process.pid)

    def put(self, manifest: dict[int, bytes], code: bytes = CODE) -> ObjectRef:
        obj = self.target.create_and_write(FUNCTIONS, code)
        values = [
            AttributeValue(Page.FUNCTION, number, value) for number, value in manifest.items()
        ]
        self.target.set_attributes(obj, values)
        return obj

    def put_signed(self, key: Key, code: bytes = CODE, **manifest: bytes) -> ObjectRef:
        numbers = {each.name.lower(): each.value for each in ManifestNumber}
        values = {numbers[name]: value for name, value in manifest.items()}
        return self.put(values | {SIGNATURE: sign(statement(code, values), key.path)}, code)

    def active(self, obj: ObjectRef) -> bool:
        return self.target.get_attribute(obj, Page.FUNCTION, ManifestNumber.STATE) == b"\1"

    def logged(self, words: str, after: int = 0) -> None:
        """Wait for words in the log, which reaches its file a little after the answer."""
        after = max(after, self.begins)
        until(lambda: words in self.serving.text()[after:], f"no '{words}' in the log")

    def refuse(self, obj: ObjectRef, code: int, log: str) -> None:
        """ACTIVATE FUNCTION is refused with this sense, and the log says why."""
        before = len(self.serving.text())
        with pytest.raises(OSDError) as caught:
            self.target.activate_function(obj)
        assert (caught.value.asc << 8 | caught.value.ascq) == code, caught.value
        self.logged(log, before)
        assert not self.active(obj)


Serve = Callable[..., Signing]
MakeKey = Callable[..., Key]
