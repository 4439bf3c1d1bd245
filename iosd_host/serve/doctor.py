# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks each layer of the host that a target needs, and says how to repair it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosd_host.common import paths
from iosd_host.config.files import load
from iosd_host.config.schema import ISCSI_PORT, ConfigError, split_portal
from iosd_host.serve.parts import default_method, is_loopback
from iosd_host.serve.preconditions import LEVELS, CannotServe, isolation_of_host
from iosd_host.serve.tgtd import find_tgtd

__all__ = ["Finding", "examine"]

# The structures shared with tgtd were compared with these releases of it.
TGT_TESTED = ((1, 0, 79), (1, 0, 97))
LANDLOCK_CREATE_RULESET = 444  # the same number on every architecture
LANDLOCK_CREATE_RULESET_VERSION = 1
KERNEL_LEAST = (5, 14)  # cgroup.kill; Landlock came with 5.13, pidfds earlier


@dataclass(frozen=True)
class Finding:
    """One layer: its state is "ok", "warn" (works, but less than it could) or "fail"."""

    layer: str
    state: str
    detail: str
    hint: str = ""


def tgt() -> Finding:
    """The daemon that `osd target serve` takes unless told otherwise, and its version."""
    try:
        tgtd = find_tgtd(os.environ.get("IOSD_TGTD"))
    except paths.MissingComponent as error:
        return Finding("tgt", "fail", "absent", str(error))
    if not tgtd.version:
        return Finding("tgt", "warn", str(tgtd))
    version = tuple(int(part) for part in re.findall(r"\d+", tgtd.version)[:3])
    if not TGT_TESTED[0] <= version <= TGT_TESTED[1]:
        low, high = (".".join(map(str, each)) for each in TGT_TESTED)
        hint = f"tested with {low} to {high}; the module refuses a layout it does not know"
        return Finding("tgt", "warn", str(tgtd), hint)
    if not tgtd.hardened:
        hint = (
            "for loopback and trusted initiators only; 'make tgtd' builds a hardened one "
            "(package: iosd-tgtd)"
        )
        return Finding("tgt", "ok", str(tgtd), hint)
    return Finding("tgt", "ok", str(tgtd))


def module() -> Finding:
    """bs_iosd.so."""
    try:
        path = paths.find_component(paths.MODULE)
        ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
    except paths.MissingComponent as error:
        return Finding("module", "fail", "absent", str(error))
    except OSError as error:
        return Finding("module", "fail", str(error), "run 'make packages build'")
    return Finding("module", "ok", str(path))


def sandboxd() -> Finding:
    """Isolation that iosd-sandboxd can provide here."""
    try:
        host = isolation_of_host()
    except (paths.MissingComponent, CannotServe, OSError, subprocess.SubprocessError) as error:
        return Finding("sandboxd", "fail", "no answer", str(error))
    level = str(host["level"])
    if level == LEVELS[0]:
        return Finding("sandboxd", "ok", f"isolation {level}")
    why = "; ".join(str(text) for text in host.get("missing", ()))
    hint = f"scripts run only with --isolation {level} or best"
    return Finding("sandboxd", "warn", f"isolation {level}: {why}", hint)


def sandbox_uids() -> Finding:
    """Whether the user ids of sandboxes are unused."""
    try:
        base = load(None).target["uid_base"].value
        uids = isolation_of_host(base)["uids"]
    except (
        ConfigError,
        paths.MissingComponent,
        CannotServe,
        OSError,
        subprocess.SubprocessError,
    ) as error:
        return Finding("sandbox uids", "warn", "unknown", str(error))
    detail = f"{uids['first']} to {uids['last']}"
    if uids["taken"]:
        hint = "choose others with --uid-base, or uid_base in /etc/iosd/iosd.toml"
        return Finding("sandbox uids", "fail", f"{detail} are not free: {uids['taken']}", hint)
    return Finding("sandbox uids", "ok", detail)


# Advice for a layer of the sandboxes that this host does not provide.
NAMESPACE = "run as root; in a container, allow new namespaces (CAP_SYS_ADMIN, its seccomp profile)"
CGROUP = (
    "run as root with the controller mounted and writable, or delegate a control group; under cgroup v2 "
    "it must have no other process, as 'systemd-run --scope -p Delegate=yes' gives one"
)
REMEDIES = {
    "userns": "sysctl user.max_user_namespaces=15000; in a container, allow new user namespaces",
    "mountns": NAMESPACE,
    "pidns": NAMESPACE,
    "netns": NAMESPACE,
    "ipcns": NAMESPACE,
    "utsns": NAMESPACE,
    "uid": "run as root (CAP_SETUID and CAP_SETGID); in a container, give it ids for --uid-base",
    "no_new_privs": "a kernel of 3.5 or later",
    "rlimits": "leave the daemon's own limits above those of the jobs",
    "landlock": "boot with lsm=landlock,\u2026 (Linux 5.13 or later)",
    "seccomp": "a kernel with CONFIG_SECCOMP_FILTER",
    "oom_score": "do not start the daemon with the highest oom_score_adj",
    "cgroup_memory": CGROUP,
    "cgroup_pids": CGROUP,
    "cgroup_cpu": CGROUP,
}


def layer_findings(host: dict[str, Any]) -> Iterator[Finding]:
    """One finding for each layer of a sandbox, from what iosd-sandboxd tells of the host."""
    why = dict(str(text).partition(": ")[::2] for text in host.get("missing", ()))
    for layer in host.get("layers", ()):
        name = str(layer["name"])
        if layer["available"]:
            yield Finding(f"isolation {name}", "ok", str(layer["what"]))
        else:
            detail = f"{why.get(name, 'not available')}; missing: {layer['what']}"
            yield Finding(f"isolation {name}", "warn", detail, REMEDIES.get(name, ""))


def isolation() -> Iterator[Finding]:
    """Each layer of the sandboxes; none if iosd-sandboxd does not answer (sandboxd() reports
    that)."""
    with contextlib.suppress(
        paths.MissingComponent, CannotServe, OSError, subprocess.SubprocessError
    ):
        yield from layer_findings(isolation_of_host())


def cgroups() -> Finding:
    """Cgroup hierarchies that can limit memory."""
    root = Path("/sys/fs/cgroup")
    unified = root / "cgroup.controllers"
    if unified.exists() and "memory" in unified.read_text().split():
        name, writable = "v2", os.access(root, os.W_OK)
    elif (root / "memory").is_dir():
        name, writable = "v1", os.access(root / "memory", os.W_OK)
    else:
        return Finding(
            "cgroups", "warn", "no memory controller", "memory is limited by rlimits only"
        )
    if not writable:
        return Finding(
            "cgroups", "warn", f"{name}, not writable", "run as root, or delegate a group"
        )
    return Finding("cgroups", "ok", name)


def landlock() -> Finding:
    """The ABI of Landlock."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    abi = syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    if abi < 1:
        reason = os.strerror(ctypes.get_errno())
        return Finding("landlock", "warn", reason, "boot with lsm=landlock,… for one layer more")
    return Finding("landlock", "ok", f"ABI {abi}")


def user_namespaces() -> Finding:
    """Whether user namespaces may be made."""
    limit = Path("/proc/sys/user/max_user_namespaces")
    switch = Path("/proc/sys/kernel/unprivileged_userns_clone")
    if not limit.exists() or limit.read_text().strip() == "0":
        hint = "sysctl user.max_user_namespaces=…, or --isolation no-userns"
        return Finding("userns", "warn", "switched off", hint)
    if os.geteuid() != 0 and switch.exists() and switch.read_text().strip() == "0":
        return Finding("userns", "warn", "for root only", "run as root, or set the sysctl")
    return Finding("userns", "ok", "available")


def seccomp() -> Finding:
    """Whether system calls can be filtered."""
    actions = Path("/proc/sys/kernel/seccomp/actions_avail")
    if actions.exists() and "errno" in actions.read_text().split():
        return Finding("seccomp", "ok", "filters available")
    return Finding("seccomp", "fail", "no filters", "this kernel lacks CONFIG_SECCOMP_FILTER")


def kernel() -> Finding:
    """The kernel's version."""
    release = platform.release()
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) < KERNEL_LEAST:
        least = ".".join(map(str, KERNEL_LEAST))
        return Finding("kernel", "warn", release, f"some layers need Linux {least} or later")
    return Finding("kernel", "ok", release)


def rights() -> Finding:
    """Whether we are root."""
    if os.geteuid() == 0:
        return Finding("rights", "ok", "root")
    hint = "full isolation needs root; storage alone does not"
    return Finding("rights", "warn", f"uid {os.geteuid()}", hint)


LAYERS: tuple[Callable[[], Finding], ...] = (
    kernel,
    rights,
    tgt,
    module,
    sandboxd,
    sandbox_uids,
    cgroups,
    user_namespaces,
    landlock,
    seccomp,
)


def security() -> Finding:
    """Security method of a new store, by the system's configuration."""
    try:
        target = load(None).target
    except ConfigError as error:
        return Finding("security", "warn", "unknown", str(error))
    host, _ = split_portal(str(target["portal"].value), ISCSI_PORT)
    beyond = not is_loopback(host)
    method = target["security"].value or default_method(host)
    detail = f"a store made now begins with {method}"
    if beyond and method == "nosec":
        hint = 'anybody who can reach the portal may do anything: say security = "cmdrsp"'
        return Finding("security", "warn", detail, hint)
    if method == "nosec":
        hint = 'any user of this host may do anything: say security = "capkey", or nothing'
        return Finding("security", "warn", detail, hint)
    return Finding("security", "ok", detail)


def examine() -> Iterator[Finding]:
    """Look at each layer in turn."""
    for look in LAYERS:
        yield look()
    yield security()
    yield from isolation()
