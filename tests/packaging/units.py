# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the installed units without systemd: ``python -m tests.packaging.units PREFIX``, as root.

In mount and network namespaces of its own, so that nothing else on the machine sees /run, port 3260 or
the user `iosd` that is made here.  It does what the units' own lines say, and no more than they say: user,
folders, environment, order, readiness, stopping.  What it reads nothing of, systemd-analyze checks.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

DEADLINE_S = 60.0
TGT = Path("/lib/systemd/system/tgt.service")
USER = "iosd"
UID = 64999
GID = 64998  # another number than the uid, as useradd may choose
MANAGER, MANAGER_UID, MANAGER_GID = "iosd-manager", 64997, 64996
SCRIPT = "import osd\nprint('hello from', osd.zone.data.read().decode())\n"


class Unit:
    """A unit file with its drop-ins: every setting as a list, as an empty one clears it."""

    def __init__(self, path: Path, drop_ins: Path | None = None) -> None:
        self.name = path.name
        self.settings: dict[str, list[str]] = defaultdict(list)
        for file in (path, *sorted((drop_ins or path.with_suffix(".none")).glob("*.conf"))):
            self._read(file)

    def _read(self, file: Path) -> None:
        for line in file.read_text().splitlines():
            key, equals, value = line.partition("=")
            if not equals or line.startswith("#"):
                continue
            if value:
                self.settings[key].append(value)
            else:
                self.settings[key] = []

    def one(self, key: str, default: str = "") -> str:
        """The last word on it."""
        return self.settings[key][-1] if self.settings[key] else default

    @property
    def user(self) -> str:
        return self.one("User", "root")

    def folders(self) -> None:
        """RuntimeDirectory= and StateDirectory=, the unit's user's."""
        owner = pwd.getpwnam(self.user)
        for key, root in (("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")):
            for name in " ".join(self.settings[key]).split():
                folder = Path(root) / name
                folder.mkdir(
                    mode=int(self.one(f"{key[:-9]}DirectoryMode", "0755"), 8), exist_ok=True
                )
                os.chown(folder, owner.pw_uid, owner.pw_gid)

    def command(self, line: str) -> list[str]:
        """With what changes the user."""
        words = shlex.split(line.lstrip("-+"))
        if self.user == "root" or "+" in line[:2]:
            return words
        owner = pwd.getpwnam(self.user)
        change = [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        return ["setpriv", *change, "--no-new-privs", *words]

    def run(self, key: str) -> None:
        """Each of the lines, which must succeed unless it begins with "-"."""
        for line in self.settings[key]:
            done = subprocess.run(self.command(line), env=environment(), timeout=DEADLINE_S)
            assert done.returncode == 0 or line.startswith("-"), f"{self.name}: {line}: {done}"


def environment() -> dict[str, str]:
    """What systemd gives a service."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
    }


def await_ready(unit: Unit, process: subprocess.Popen[bytes], notify: socket.socket) -> None:
    """Until it says so; it must not end before."""
    deadline = time.monotonic() + DEADLINE_S
    notify.settimeout(0.2)
    said: list[bytes] = []
    while b"READY=1" not in said:
        assert process.poll() is None, f"{unit.name} ended with {process.returncode}"
        assert time.monotonic() < deadline, f"{unit.name} is not ready"
        with contextlib.suppress(TimeoutError):
            said = notify.recv(4096).split(b"\n")


@contextlib.contextmanager
def running(unit: Unit, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A service of Type=notify, from READY=1 on; SIGTERM at the end unless its ExecStop= ended it."""
    assert unit.one("Type") == "notify"
    unit.folders()
    path = f"/run/notify-{unit.name}"
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        Path(path).chmod(0o666)
        unit.run("ExecCondition")
        unit.run("ExecStartPre")
        process = subprocess.Popen(
            unit.command(unit.one("ExecStart")),
            env=environment() | {"NOTIFY_SOCKET": path} | more,
            start_new_session=True,
        )
        try:
            await_ready(unit, process, notify)
            unit.run("ExecStartPost")
            yield process
            unit.run("ExecStop")
            if not unit.settings["ExecStop"]:
                process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)
            unit.run("ExecStopPost")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def isolate() -> None:
    """A /run, /var/lib and network of our own, and the users that sysusers.d makes."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for folder in ("/run", "/var/lib"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder], check=True)
    lines = {
        "/etc/passwd": f"{USER}:x:{UID}:{GID}::/var/lib/iosd:/usr/sbin/nologin\n"
        f"{MANAGER}:x:{MANAGER_UID}:{MANAGER_GID}::/var/lib/iosd-manager:/usr/sbin/nologin\n",
        "/etc/group": f"{USER}:x:{GID}:\n{MANAGER}:x:{MANAGER_GID}:\n",
    }
    for name, line in lines.items():
        copy = Path("/run", Path(name).name)
        copy.write_text(Path(name).read_text() + line)
        subprocess.run(["mount", "--bind", copy, name], check=True)


def osd(prefix: Path, *words: str, stdin: str = "") -> str:
    """The installed program, as another user of this host would run it."""
    done = subprocess.run(
        [prefix / "bin" / "osd", *words],
        env=environment() | {"IOSD_TARGET": "iscsi://127.0.0.1:3260/iqn.2026-11.iosd:target/1"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, f"osd {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def portals() -> set[str]:
    """Where something listens at tgtd's usual port."""
    found = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3] for line in found.splitlines() if line.split()[3].endswith(":3260")}


def managed(prefix: Path) -> None:
    """The manager has found the target, and root the manager."""
    words = (prefix / "bin" / "osd", "pool", "set", "default", "queue=99", "--why", "a test")
    deadline = time.monotonic() + DEADLINE_S
    while (done := subprocess.run(words, env=environment(), capture_output=True)).returncode:
        assert time.monotonic() < deadline, done
        time.sleep(0.05)


def serve(prefix: Path) -> None:
    """tgtd, sandboxes, target; a job; tgtd dies and comes back; all of it stops."""
    units = prefix / "lib/systemd/system"
    module = (
        prefix / "lib/iosd/iosd_host/libexec/bs_iosd.so"
    )  # Debian's tgtd has one folder for modules
    tgt = Unit(TGT, units / "tgt.service.d")
    attach = Unit(units / "iosd-attach.service")
    manager = Unit(units / "iosd-manager.service")
    with running(Unit(units / "iosd-sandboxd.service")), running(manager) as managing:
        status = Path(f"/proc/{managing.pid}/status").read_text()
        assert f"Uid:\t{MANAGER_UID}\t" in status and "Seccomp:\t2" in status
        for life in ("first", "second"):
            with running(tgt, LD_PRELOAD=str(module)) as tgtd:
                assert Path(f"/proc/{tgtd.pid}").stat().st_uid == UID
                attach.folders()
                attach.run("ExecStart")
                attach.run("ExecStart")  # again: nothing to do
                assert portals() == {"127.0.0.1:3260"}
                if life == "first":
                    osd(prefix, "part", "create", "0x10000")
                    osd(prefix, "obj", "write", "0x10000", stdin="the store")
                managed(prefix)
                zone = ("--zone", "0x10000/0x10000", "--wait")
                assert osd(prefix, "exec", "-", *zone, stdin=SCRIPT) == "hello from the store"
                if life == "first":
                    tgtd.kill()  # no ExecStop= of anything: as a crash, and systemd starts it again
                    tgtd.wait()
                    tgt.settings["ExecStop"], stops = [], tgt.settings["ExecStop"]
                else:
                    tgt.settings["ExecStop"] = stops
                    attach.run("ExecStop")


def main(words: Sequence[str]) -> None:
    """Run it all, in the namespaces of whoever called `unshare`."""
    isolate()
    started = time.monotonic()
    serve(Path(words[0]))
    print(f"the units work: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
