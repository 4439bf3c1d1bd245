# SPDX-License-Identifier: GPL-2.0-or-later
"""``make deb-test``: the packages in a clean Debian that systemd runs; two to four minutes, as root.

Installed by apt while systemd runs, so that the packages' own scripts start everything; a job; what dies
comes back; a configuration that was changed stays; beside another target of /etc/tgt; and after a purge
every file, user and unit is as before.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.machine import Machine, told

OURS = (
    *("iosd-doc", "iosd-manager", "iosd-sandbox", "iosd-secmgr", "iosd-target", "iosd-tgtd"),
    "python3-pyosd",
)
SERVICES = ("tgt", "iosd-sandboxd", "iosd-attach", "iosd-manager")
URL = "iscsi://127.0.0.1:3260/iqn.2026-11.iosd:target/1"
SCRIPT = "import osd\nprint(osd.zone.data.read().decode())\n"
OTHER = "iqn.2026-11.example:disk"
ADDRESS = "192.0.2.10"
CHAP_FILE = "/etc/iosd/chap.toml"
CHAP = """\
[[incoming]]
user = "ada"
secret = "correct horse battery"
"""
# Logs of apt, dpkg, adduser and systemd; caches.
NOISE: tuple[str, ...] = (
    "var/log/",
    "var/cache/",
    "var/lib/dpkg/",
    "var/lib/apt/",
    "var/lib/systemd/",
    "run/",
    "tmp/",
)
NOISE += ("var/backups/", "dev/", "proc/", "sys/", "debs/", "root/", "srv/")
BACKUPS = ("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-")

# What matters of the unit of tgt 1.0.97: other ways to start and to stop, and less that is allowed.
HARDENED = """\
[Service]
Type=forking
ExecStart=/usr/sbin/tgtd
ExecStartPost=/usr/sbin/tgt-admin -e -c /etc/tgt/targets.conf
ExecStop=/usr/sbin/tgt-admin --update ALL -c /dev/null -f
ExecStop=/usr/sbin/tgtadm --op delete --mode system
ProtectHostname=true
ProtectClock=true
PrivateTmp=true
SystemCallArchitectures=native
RestrictNamespaces=true
ProtectHome=true
"""


def say(text: str) -> None:
    """With the time that it took so far."""
    print(f"{time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


STARTED = time.monotonic()


def dependencies(debs: list[Path]) -> str:
    """Dependencies of the packages outside of them."""
    found = []
    for deb in debs:
        words = ["dpkg-deb", "-f", str(deb), "Depends"]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found += [each.strip() for each in text.split(",")]
    return ", ".join(sorted({each for each in found if each and each.split()[0] not in OURS}))


def files(machine: Machine) -> Iterator[tuple[str, str]]:
    """Every file, with what it is: a digest of those of /etc, else only that it is there."""
    for path in sorted(machine.root.rglob("*")):
        name = str(path.relative_to(machine.root))
        if (
            name.startswith(NOISE)
            or name in BACKUPS
            or f"{name}/" in NOISE
            or "__pycache__" in name
        ):
            continue
        digest = ""
        if name.startswith("etc/") and path.is_file() and not path.is_symlink():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        yield name, digest


def osd(machine: Machine, *words: str, stdin: str = "") -> str:
    """The program, as a user without rights."""
    return machine.run(*osd_words(*words), stdin=stdin).strip()


# A user to whom root has given a copy of the target's credential, as the documentation says.
AS_USER = """
install -m 600 -o 65534 /run/iosd-credentials/* /tmp/credential 2>/dev/null || true
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \\
	env IOSD_CREDENTIALS=/tmp/credential HOME=/tmp "$@"
"""


def osd_words(*words: str) -> list[str]:
    return ["sh", "-c", AS_USER, "sh", f"IOSD_TARGET={URL}", "osd", *words]


def job(machine: Machine) -> None:
    """A script reads what was stored."""
    words = ("exec", "-", "--zone", "0x10000/0x10000", "--wait")
    told = osd(machine, *words, stdin=SCRIPT)
    assert told == "the store", told


def main_pid(machine: Machine, unit: str) -> int:
    """As inside."""
    return int(machine.run("systemctl", "show", "-P", "MainPID", unit))


def states(machine: Machine, *units: str) -> list[str]:
    """Of each."""
    return machine.try_run("systemctl", "is-active", *units)[1].split()


def all_active(machine: Machine) -> bool:
    """Whether everything runs."""
    return states(machine, *SERVICES) == ["active"] * len(SERVICES)


def settle(machine: Machine) -> None:
    """Wait for that; or say what does not."""
    try:
        machine.wait(lambda: all_active(machine), "running services")
    except AssertionError:
        print(machine.try_run("systemctl", "status", "--no-pager", *SERVICES)[1])
        raise


def install(machine: Machine) -> None:
    """By apt, from the files alone."""
    debs = sorted(f"/debs/{path.name}" for path in (machine.root / "debs").glob("*.deb"))
    machine.run("apt-get", "install", "-y", "--no-install-recommends", *debs)


def portals(machine: Machine) -> set[str]:
    """Listening addresses of tgtd, from /proc/net/tcp and tcp6: little-endian addresses."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in machine.run("cat", f"/proc/net/{name}").splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == "0A" and address.endswith(":0CBC"):  # LISTEN, port 3260
                found.add(address.partition(":")[0])
    return found


def serves(machine: Machine) -> None:
    """As installed: a job, and it survives what may happen."""
    settle(machine)
    uid = machine.run("id", "-u", "iosd").strip()
    status = machine.run("cat", f"/proc/{main_pid(machine, 'tgt')}/status")
    assert f"Uid:\t{uid}\t" in status and "CapEff:\t0000000000000000" in status
    assert portals(machine) == {"0100007F"}
    hardened = machine.run("readlink", f"/proc/{main_pid(machine, 'tgt')}/exe").strip()
    assert hardened == "/usr/lib/iosd/tgtd"
    machine.run("osd", "doctor")
    osd(machine, "part", "create", "0x10000")
    osd(machine, "obj", "write", "0x10000", stdin="the store")
    job(machine)
    say("a job has run; tgtd has no rights, and listens on loopback alone")
    manages(machine)
    for unit in ("tgt", "iosd-sandboxd", "iosd-manager"):
        before = main_pid(machine, unit)
        machine.run("sh", "-c", f"kill -KILL {before}")
        machine.wait(lambda u=unit, b=before: main_pid(machine, u) not in (0, b), f"{unit} again")
        settle(machine)
        machine.wait(lambda: machine.try_run(*osd_words("target", "ping"))[0] == 0, "target")
        job(machine)
        say(f"{unit} was killed, and is back with all it had")
    machine.run("systemctl", "restart", "tgt")
    settle(machine)
    job(machine)
    machine.run("systemctl", "stop", "iosd.target")
    machine.wait(lambda: states(machine, *SERVICES[1:]) == ["inactive"] * 3, "end of the services")
    assert machine.run("systemctl", "is-active", "tgt")
    machine.run("systemctl", "start", "iosd.target")
    settle(machine)
    job(machine)
    say("stopped and started in order")


def manages(machine: Machine) -> None:
    """The manager manages the target, shows it, and changes it. The configuration is read again."""
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8470/metrics').read().decode())"
    read = ("/usr/bin/python3", "-c", fetch)
    machine.wait(lambda: "iosd_workers" in machine.try_run(*read)[1], "metrics")
    machine.run("osd", "pool", "set", "default", "queue=55", "--why", "a test")
    assert "queue=55" in osd(machine, "pool", "show", "default", "-o", "json").replace('": ', "=")
    machine.run("osd", "pool", "reset", "default")
    config = machine.root / "etc/iosd/iosd.toml"
    before = config.read_text()
    config.write_text(f"{before}\n[pools.default]\nqueue = 77\n[pools.second]\nmax = 1\n")
    machine.run("systemctl", "reload", "iosd-attach")
    machine.wait(lambda: "second" in machine.run(*osd_words("pool", "ls")), "second pool")
    assert osd(machine, "exec", "-", "--pool", "second", "--wait", stdin="print(7)") == "7"
    config.write_text("[pools.default]\nmax = 1000\n")
    assert machine.try_run("systemctl", "reload", "iosd-attach")[0] != 0
    config.write_text(before)
    machine.run("systemctl", "reload", "iosd-attach")
    say(
        "the manager shows it, and changes it; the configuration was read again, and a wrong one refused"
    )


def network(machine: Machine) -> None:
    """An address that is not loopback, with CHAP, as docs/howto/serve-a-network.md has it.

    Only root reads the file of CHAP, and the manager starts without it.
    """
    inside = ["nsenter", "-t", str(machine.pid), "-n", "ip", "address"]
    told([*inside, "add", f"{ADDRESS}/32", "dev", "lo"])
    accounts, config = machine.root / CHAP_FILE[1:], machine.root / "etc/iosd/iosd.toml"
    accounts.write_text(CHAP)
    accounts.chmod(0o600)
    before = config.read_text()
    # `osd target detach` withdraws the credential of the portal that the configuration names then.
    machine.run("systemctl", "stop", "iosd.target", "tgt")
    lines = (f'portal = "{ADDRESS}:3260"', 'allow = ["192.0.2.0/24"]', f'chap_file = "{CHAP_FILE}"')
    config.write_text("\n".join(["[target]", *lines, ""]))
    machine.run("systemctl", "start", "tgt", "iosd.target")
    settle(machine)
    assert portals(machine) == {"0A0200C0"}
    url = URL.replace("127.0.0.1", ADDRESS)
    assert machine.try_run("osd", "target", "ping", "--target", url)[0] != 0
    known = ("env", "IOSD_CHAP_USER=ada", "IOSD_CHAP_SECRET=correct horse battery")
    zone = ("--zone", "0x10000/0x10000", "--wait", "--target", url)
    assert machine.run(*known, "osd", "exec", "-", *zone, stdin=SCRIPT).strip() == "the store"
    machine.run("systemctl", "stop", "iosd-attach")
    config.write_text(before)
    accounts.unlink()
    machine.run("systemctl", "start", "iosd-attach")
    settle(machine)
    told([*inside, "delete", f"{ADDRESS}/32", "dev", "lo"])
    job(machine)
    say("a network is served with CHAP, and loopback again")


def other_unit(machine: Machine) -> None:
    """The drop-ins fit another tgt.service, and the distribution's tgtd once iosd-tgtd's is masked."""
    unit = machine.root / "etc/systemd/system/tgt.service"
    mask = machine.root / "etc/systemd/system/tgt.service.d/iosd-tgtd.conf"
    mask.parent.mkdir()
    mask.symlink_to("/dev/null")
    for text in (HARDENED, None):
        machine.run("systemctl", "stop", "tgt")
        unit.unlink(missing_ok=True)
        if text is not None:
            unit.write_text(text)
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "start", "tgt")
        settle(machine)
        kind = machine.run("systemctl", "show", "-P", "Type", "tgt").strip()
        assert kind == ("notify" if text is None else "forking")
        job(machine)
        program = machine.run("readlink", f"/proc/{main_pid(machine, 'tgt')}/exe").strip()
        assert program == "/usr/sbin/tgtd"
    mask.unlink()
    mask.parent.rmdir()
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "tgt")
    settle(machine)
    say("with the distribution's tgtd, and under tgt 1.0.97's unit, too")


def upgrades(machine: Machine) -> None:
    """Installed again over itself: a changed configuration and the store stay."""
    config = machine.root / "etc/iosd/iosd.toml"
    config.write_text(f"[target]\nworkers = 3\n{config.read_text()}")
    machine.run("sh", "-c", "dpkg --force-confold -i /debs/*.deb")
    settle(machine)
    assert config.read_text().startswith("[target]\nworkers = 3\n")
    job(machine)
    say("installed again: the configuration that was changed and the store are as they were")


def purge(machine: Machine) -> None:
    """All of it, and what it left behind."""
    machine.run("apt-get", "purge", "-y", *OURS)
    machine.wait(lambda: machine.try_run("systemctl", "is-active", "tgt")[0] == 0, "tgt")
    assert machine.run("cat", f"/proc/{main_pid(machine, 'tgt')}/status").count("Uid:\t0\t") == 1
    kinds = "--type=service,socket,target,timer,path,slice"  # mounts below /dev are the host's
    units = machine.run(
        "systemctl", "list-units", "--all", "--plain", "--no-legend", kinds, "*iosd*"
    )
    assert not units.strip(), units
    left = machine.run("find", "/run", "-name", "*iosd*").strip()
    assert not left, left


def beside(machine: Machine) -> None:
    """A tgtd with a disk continues as before, with the object store in addition. The hardened
    daemon permits this at once, the distribution's only if it is allowed."""
    disk = machine.root / "srv/disk"
    disk.write_bytes(bytes(1 << 20))
    conf = machine.root / "etc/tgt/conf.d/disk.conf"
    conf.write_text(f"<target {OTHER}>\n  backing-store /srv/disk\n</target>\n")
    machine.run("systemctl", "restart", "tgt")
    install(machine)
    settle(machine)
    assert OTHER in machine.run("tgtadm", "--op", "show", "--mode", "target")
    assert "00000000" in portals(machine)
    mask = machine.root / "etc/systemd/system/tgt.service.d/iosd-tgtd.conf"
    mask.symlink_to("/dev/null")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "tgt")
    attached = ("systemctl", "show", "-P", "ExecMainStatus", "iosd-attach")
    machine.wait(lambda: machine.try_run(*attached)[1].strip() not in ("", "0"), "refusal")
    assert OTHER in machine.run("tgtadm", "--op", "show", "--mode", "target")
    why = machine.run("journalctl", "-u", "iosd-attach", "--no-pager")
    assert "unsafe_portal" in why and "00000000" in portals(machine)
    config = machine.root / "etc/iosd/iosd.toml"
    config.write_text("[target]\nunsafe_portal = true\n")
    machine.run("systemctl", "restart", "iosd-attach")
    settle(machine)
    osd(machine, "part", "create", "0x10000")
    osd(machine, "obj", "write", "0x10000", stdin="the store")
    machine.run("systemctl", "reload", "tgt")  # tgt-admin removes what /etc/tgt does not have
    machine.wait(lambda: machine.try_run(*osd_words("target", "ping"))[0] == 0, "target")
    job(machine)
    assert OTHER in machine.run("tgtadm", "--op", "show", "--mode", "target")
    say("beside another target, which nothing was changed of")
    mask.unlink()
    purge(machine)
    assert OTHER in machine.run("tgtadm", "--op", "show", "--mode", "target")
    conf.unlink()


def main(folder: Path) -> None:
    """All of it."""
    debs = sorted(folder.glob("*.deb"))
    assert len(debs) == len(OURS), f"{folder} has not the {len(OURS)} packages: make deb"
    with Machine() as machine:
        machine.bootstrap("systemd", "dbus", "ca-certificates")
        shutil.copytree(folder, machine.root / "debs", ignore=shutil.ignore_patterns("*.changes"))
        say("a clean Debian")
        machine.chroot("apt-get", "update", "-qq")
        needs = dependencies(debs)
        machine.chroot("apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", needs)
        machine.boot()
        before = dict(files(machine))
        say("what the packages depend on is there, and systemd runs")
        install(machine)
        say("installed")
        serves(machine)
        network(machine)
        other_unit(machine)
        upgrades(machine)
        purge(machine)
        beside(machine)
        after = dict(files(machine))
        new = {name for name in after if after[name] != before.get(name)}
        assert not new, f"left behind: {sorted(new)}"
        gone = before.keys() - after.keys()
        assert not gone, f"taken away: {sorted(gone)}"
        say("purged: nothing is left")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
