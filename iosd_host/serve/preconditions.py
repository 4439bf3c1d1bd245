# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks before a target is served: isolation of the host, portal, folder of the store."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from iosd_host.common import paths
from iosd_host.common.acting import call_as
from iosd_host.common.users import group_of
from iosd_host.serve.parts import TargetConfig
from iosd_host.serve.scope import in_scope

__all__ = [
    "LEVELS",
    "CannotServe",
    "check_folders",
    "check_portal",
    "choose_isolation",
    "expect_store",
    "isolation_of_host",
    "open_control_folder",
    "portal_fault",
    "prepare_store",
    "program_root",
    "run_root",
]

STORE_NAMES = {"superblock", "lock", "data", "db"}  # of a store, also of one that was begun
LEVELS = ("full", "no-cgroup", "no-userns", "minimal")  # strongest first


class CannotServe(Exception):
    """The configuration cannot be served as asked; the text says why and what to do."""


def isolation_of_host(uid_base: int | None = None) -> dict[str, Any]:
    """Ask iosd-sandboxd what isolation this host can give: {"level": ..., "uids": ...}."""
    program = paths.find_component(paths.SANDBOXD)
    command = [str(program), "--print-level", "--python-dir", str(paths.python_dir())]
    if uid_base is not None:
        command += ["--uid-base", str(uid_base)]
    done = subprocess.run(
        in_scope(command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    try:
        answer = json.loads(done.stdout)
        level = answer["level"]
    except (ValueError, KeyError, TypeError):
        text = done.stderr.strip() or f"exit {done.returncode}"
        raise CannotServe(f"iosd-sandboxd cannot tell the isolation of this host: {text}") from None
    if level not in LEVELS:
        raise CannotServe(f"iosd-sandboxd knows an isolation level {level!r} that we do not")
    return dict(answer)


def choose_isolation(wanted: str, uid_base: int | None = None) -> str:
    """Return the level to run at.

    Raises:
        CannotServe: the host cannot give it, or somebody has the ids of sandboxes.
    """
    host = isolation_of_host(uid_base)
    best = str(host["level"])
    uids = host.get("uids", {})
    if uids.get("taken") and os.geteuid() == 0:
        raise CannotServe(
            f"the ids of sandboxes, {uids['first']} to {uids['last']}, are not free: {uids['taken']}; "
            "choose others with --uid-base"
        )
    if wanted == "best":
        return best
    if LEVELS.index(wanted) < LEVELS.index(best):
        why = "; ".join(str(text) for text in host.get("missing", ())) or "see 'osd doctor'"
        raise CannotServe(
            f"this host cannot isolate scripts at level '{wanted}' ({why}); "
            f"repair that, or allow less: --isolation {best}"
        )
    return wanted


def check_portal(config: TargetConfig, *, hardened: bool = False) -> None:
    """Refuse to offer a stock tgtd to a network, unless told that it is a trusted one.

    Anybody who can log in to a stock tgtd can crash it or read its freed memory.
    """
    host = config.portal[0]
    try:
        loopback = config.loopback
    except ValueError:
        raise CannotServe(f"portal address '{host}' is not an IP address") from None
    if not loopback and not hardened and not config.unsafe_portal:
        raise CannotServe(
            f"portal {host} is not a loopback address, and a stock tgtd is not safe against those "
            "who can reach it; build the hardened one with 'make tgtd' (Debian package: iosd-tgtd), or, "
            "on a trusted network, say --unsafe-portal"
        )


def check_folders(config: TargetConfig) -> None:
    """Refuse paths that tgtd would cut, and two folders that are not apart."""
    data, ssd = config.data, config.ssd
    for text in map(str, filter(None, (data, ssd))):
        if any(character in text for character in ",;") or not text.isprintable():
            raise CannotServe(
                f"the path '{text}' may hold no comma, semicolon or control character"
            )
    if ssd is not None and (ssd.is_relative_to(data) or data.is_relative_to(ssd)):
        raise CannotServe(
            f"the store's folder {data} and its folder on an SSD, {ssd}, are one, or one is in the "
            "other: give two folders, each on its own device"
        )


def unprivileged_port() -> int:
    """The first port on which every user can listen."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    except (OSError, ValueError):
        return 1024


def portal_fault(host: str, portal: str) -> str:
    """Why tgtd could not listen there, and the remedy.  portal: the host's address with the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            return (
                f"{host} is not an address of this host ({error.strerror}): 'ip address' lists them"
            )
    number = int(portal.rpartition(":")[2])
    if os.geteuid() != 0 and number < unprivileged_port():
        return f"only root can listen on port {number}: choose another with --portal"
    return (
        f"portal {portal} is taken (by another target, or by the distribution's tgt service): "
        "choose another with --portal"
    )


def give(folder: Path, uid: int, gid: int) -> None:
    """Make a user and a group the owners of a folder.  Raises: CannotServe: they are none here; OSError."""
    try:
        os.chown(folder, uid, gid)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise CannotServe(
            f"this user namespace lacks user {uid} or group {gid} (/proc/self/uid_map and gid_map list "
            "those it has): choose others with --uid and --uid-base; the resource manager has a user of "
            "its own, --no-manager needs none"
        ) from None


def open_control_folder(folder: Path, uid: int, manager: int | None) -> None:
    """Have tgtd's user make its control socket there, and the manager's user reach it.

    The set-group-id bit gives the socket the manager's group, to which the module opens it.
    """
    give(folder, uid, group_of(uid if manager is None else manager))
    folder.chmod(0o700 if manager is None else 0o2710)


def expect_store(data: Path, master_key: Path) -> None:
    """Refuse to make a new store in place of one that is missing, as with its disk not mounted.

    The file of the first master key is beside the store, so it remains when the store is gone.
    """
    try:
        names = {each.name for each in data.iterdir()}
    except OSError:  # prepare_store() has words for all but its absence
        names = set()
    if names.isdisjoint(STORE_NAMES) and master_key.exists():
        raise CannotServe(
            f"{data} has no store, but {master_key} belongs to one that was there: mount its disk, or "
            "restore it; to begin with a new store, rename that file"
        )


def prepare_store(folder: Path, uid: int | None) -> None:
    """Make the store's folder, or see that tgtd's user owns and reaches it."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700)
            if uid is not None:
                give(folder, uid, group_of(uid))
        elif uid is not None and folder.stat().st_uid != uid and not any(folder.iterdir()):
            give(folder, uid, group_of(uid))
        names = {each.name for each in folder.iterdir()}
    except OSError as error:
        denied = error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0
        remedy = "; run this as its owner or as root, or choose another --data" if denied else ""
        raise CannotServe(f"cannot use {folder} for data: {error.strerror}{remedy}") from None
    if names and names.isdisjoint(STORE_NAMES):
        raise CannotServe(
            f"{folder} has other files and no store: name an empty folder, or a new one"
        )
    if uid is None:
        return
    for path in (folder, folder / "data", folder / "db", *folder.glob("db/*")):
        with contextlib.suppress(FileNotFoundError):
            if (owner := path.stat().st_uid) != uid:
                raise CannotServe(
                    f"{path} belongs to uid {owner}, and tgtd runs as {uid}. If it is of another "
                    "target, name another folder; if it is this target's store, run "
                    f"chown -R {uid} {folder}, or say --uid {owner}"
                )
    user, writable = (uid, group_of(uid)), partial(os.access, folder, os.W_OK, effective_ids=True)
    if not call_as(user, writable):
        raise CannotServe(
            f"uid {uid}, which tgtd runs as, cannot reach {folder}: "
            "choose another --data, or another --uid"
        )


def run_root() -> str:
    """Parent of the folder of sockets; socket paths must be short."""
    for folder in ("/run", os.environ.get("XDG_RUNTIME_DIR", "")):
        if folder and os.access(folder, os.W_OK):
            return folder
    return tempfile.gettempdir()


def program_root(root: str) -> str:
    """The folder for copies of tgtd and the module: `root`, unless it is mounted noexec, as Debian's /run.

    Raises: CannotServe: nothing can be executed in any of these folders.
    """
    folders = (root, "/tmp", "/var/tmp")
    for folder in folders:
        if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
            return folder
    raise CannotServe(f"cannot start tgtd: {', '.join(folders)} are mounted with noexec")
