# SPDX-License-Identifier: GPL-2.0-or-later
"""``make vm-test``: the packages in a Debian 12 as it is installed, with its kernel, systemd and cgroup v2.

A virtual machine by QEMU, without a network.  QEMU emulates the processor, because KVM of a host that is a
virtual machine itself may hang; this takes about eight minutes.  guest.sh has the steps and the checks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.packaging.__main__ import dependencies, say
from tests.packaging.machine import Machine, told

HERE = Path(__file__).resolve().parent
DEADLINE_S = 1200.0
DISK_BYTES = 6 << 30
PACKAGES = ("systemd-sysv", "udev", "dbus", "iproute2", "procps", "linux-image-cloud-amd64")
UNIT = """\
[Unit]
After=multi-user.target

[Service]
ExecStart=/root/guest.sh

[Install]
WantedBy=multi-user.target
"""


def needs(program: str, package: str) -> None:
    """Have a program that is too large to be installed for all tests."""
    if shutil.which(program) is None:
        told(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package])


def prepare(machine: Machine, folder: Path) -> None:
    """A root file system, with what the packages depend on, and guest.sh to be run."""
    machine.bootstrap("ca-certificates", *PACKAGES)
    shutil.copytree(folder, machine.root / "debs", ignore=shutil.ignore_patterns("*.changes"))
    machine.chroot("apt-get", "update", "-qq")
    wanted = dependencies(sorted(folder.glob("*.deb")))
    machine.chroot("apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", wanted)
    shutil.copy(HERE / "guest.sh", machine.root / "root")
    units = machine.root / "etc/systemd/system"
    (units / "guest.service").write_text(UNIT)
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/guest.service").symlink_to("../guest.service")
    (units / "serial-getty@ttyS0.service").symlink_to("/dev/null")  # the line is guest.sh's
    (machine.root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")


def run(root: Path, place: Path) -> str:
    """Boot it; what it has told until it switched itself off."""
    disk, console = place / "disk", place / "console"
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    told(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(disk)])
    kernel, initrd = (next((root / "boot").glob(f"{name}-*")) for name in ("vmlinuz", "initrd.img"))
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]
    command += ["-m", "3G", "-nic", "none", "-display", "none", "-no-reboot"]
    command += ["-kernel", str(kernel), "-initrd", str(initrd)]
    command += ["-append", "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0"]
    command += ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]
    command += ["-serial", f"file:{console}"]
    with subprocess.Popen(command) as machine:
        try:
            machine.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            print("it did not come to its end")
        finally:
            machine.kill()
    return console.read_text(errors="replace")


def main(folder: Path) -> None:
    """All of it."""
    needs("qemu-system-x86_64", "qemu-system-x86")
    with Machine() as machine:
        prepare(machine, folder)
        say("a Debian 12, not started yet")
        place = machine.root.with_suffix(".vm")
        place.mkdir()
        try:
            text = run(machine.root, place)
        finally:
            shutil.rmtree(place)
    print(text)
    lines = text.splitlines()
    assert "done" in lines and not [line for line in lines if line.startswith("FAILED ")]
    say(f"{sum(line.startswith('ok ') for line in lines)} things are as they should be")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
