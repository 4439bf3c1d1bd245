# SPDX-License-Identifier: GPL-2.0-or-later
"""A clean Debian that systemd runs: debootstrap, and namespaces of its own, of the network too.

Needs root, a mirror of Debian, and control groups that may be made below our own.  Nothing of the host's
systemd, network or file systems is touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

DEADLINE_S = 120.0
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
}
# $1: the root.  Then for each hierarchy of control groups its name below /sys/fs/cgroup, type and options.
BOOT = """
set -e
mount --make-rprivate /
root=$1; shift
mount --bind "$root" "$root"
mkdir -p "$root/.old"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
[ "$1" = . ] || mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
while [ $# -gt 0 ]; do
	mkdir -p "$root/sys/fs/cgroup/$1"
	mount -t "$2" -o "$3" cgroup "$root/sys/fs/cgroup/$1"
	shift 3
done
cd "$root"
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
exec env -i container=iosd-test PATH="$PATH" /lib/systemd/systemd --unit=multi-user.target
"""

# Groups, --, a command that is to run in them.
JOIN = """
while [ "$1" != -- ]; do
	echo $$ >"$1/cgroup.procs"
	shift
done
shift
exec "$@"
"""


def hierarchies() -> list[tuple[str, str, str]]:
    """Mounted hierarchies of control groups: name below /sys/fs/cgroup, type, options."""
    found = []
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and place.startswith("/sys/fs/cgroup"):
            words = [
                word
                for word in options.split(",")
                if word not in ("rw", "ro", "nosuid", "nodev", "noexec", "relatime", "xattr")
                and not word.startswith(("release_agent", "clone_children"))
            ]
            if any(word.startswith("name=") for word in words):
                words.insert(0, "none")
            name = str(Path(place).relative_to("/sys/fs/cgroup"))
            found.append((name, kind, ",".join(words) or "rw"))
    return found


class Machine:
    """The Debian; a context manager that ends it and removes it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="iosd-deb-", dir="/var/tmp"))
        self.root.chmod(0o755)
        self.group = self.root.name
        self.groups: list[Path] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self.pid:
            print(self.try_run("journalctl", "--no-pager", "--lines=80", "--quiet")[1])
        self.halt()
        shutil.rmtree(self.root, ignore_errors=True)

    def bootstrap(self, *packages: str) -> None:
        """Debian 12 and these packages; how the host reaches its mirror is taken over."""
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}"]
        with (self.root.parent / f"{self.group}.log").open("wb") as log:
            done = subprocess.run([*command, "bookworm", self.root], stdout=log, stderr=log)
        text = Path(log.name).read_text(errors="replace")
        Path(log.name).unlink()
        assert done.returncode == 0, text[-2000:]
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.root / "etc" / name)
        for file in Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copy(file, self.root / "etc/apt/apt.conf.d")

    def chroot(self, *words: str) -> str:
        """Run something before it is booted, with the host's network."""
        mounts = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
        return told(["unshare", "-m", "sh", "-ec", mounts, str(self.root), *words])

    def boot(self) -> None:
        """Start systemd, and wait until it has started what it is to start."""
        self._enter_groups()
        words = [word for each in hierarchies() for word in each]
        flags = [
            "--mount",
            "--pid",
            "--ipc",
            "--uts",
            "--cgroup",
            "--net",
            "--fork",
            "--kill-child",
        ]
        self.process = subprocess.Popen(
            [
                *("sh", "-c", JOIN, "join", *map(str, self.groups), "--"),
                *("unshare", *flags, "sh", "-c", BOOT, "boot", str(self.root), *words),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # unshare's complaint about a child that was killed
            start_new_session=True,
        )
        self.wait(self._child, "pid 1")
        self.pid = self._child()
        self.wait(lambda: self._state() in ("running", "degraded"), "systemd")
        state = self._state()
        assert state == "running", self.try_run("systemctl", "--failed")[1]

    def _enter_groups(self) -> None:
        for name, _, _ in hierarchies():
            group = Path("/sys/fs/cgroup") / name / self.group
            try:
                group.mkdir()
            except OSError:
                continue
            # A new group of processors and memory nodes has none.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists() and not (group / file).read_text().strip():
                    (group / file).write_text((group.parent / file).read_text())
            self.groups.append(group)

    def _child(self) -> int:
        assert self.process is not None
        assert self.process.poll() is None, "it did not boot"
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        if not text.strip():
            return 0
        pid = int(text.split()[0])
        command = Path(f"/proc/{pid}/comm").read_text().strip()
        return pid if command == "systemd" else 0

    def _state(self) -> str:
        return self.try_run("systemctl", "is-system-running")[1].strip()

    def try_run(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        """Run something inside; its exit code, output and errors."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", *words],
            env=ENVIRONMENT,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        return done.returncode, done.stdout, done.stderr

    def run(self, *words: str, stdin: str = "") -> str:
        """Run something inside, which must succeed."""
        code, text, errors = self.try_run(*words, stdin=stdin)
        assert code == 0, f"{' '.join(words)}: {code}: {text}{errors}"
        return text

    def wait(self, condition: object, what: str) -> None:
        """Until it holds."""
        assert callable(condition)
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"no {what} after {DEADLINE_S:g} s"
            time.sleep(0.05)

    def halt(self) -> None:
        """SIGKILL to pid 1 ends everything inside."""
        if self.process is None:
            return
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()
        self.process, self.pid = None, 0
        for group in self.groups:
            for folder in sorted(
                (path for path in group.rglob("*") if path.is_dir()), reverse=True
            ):
                folder.rmdir()
            group.rmdir()
        self.groups = []


def told(words: list[str]) -> str:
    """What a command printed; it must succeed."""
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
