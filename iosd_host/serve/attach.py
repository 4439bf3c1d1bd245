# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds the OSD target to a tgtd that runs already, such as systemd's tgt.service, and removes it.

The same target as `osd target serve` makes, with the same portal rules.  That tgtd may have other
targets; they stay unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosd_host.common.users import MANAGER_USER, group_of, uid_of
from iosd_host.common.whole_file import write_whole
from iosd_host.config.schema import ConfigError
from iosd_host.serve.local_credential import CredentialError, publish, take_key, withdraw
from iosd_host.serve.master_key import take_out
from iosd_host.serve.parts import (
    TargetConfig,
    is_loopback,
    local_key_file,
    module_options,
    pools_file,
)
from iosd_host.serve.preconditions import (
    CannotServe,
    check_folders,
    check_portal,
    expect_store,
    open_control_folder,
    prepare_store,
)
from iosd_host.serve.process import ProcessFailed
from iosd_host.serve.reload import Managed, tell_manager, tell_target
from iosd_host.serve.signers import signers_beside, signers_text, write_signers
from iosd_host.serve.supervise import format_portal, with_default
from iosd_host.serve.tgtadm import LUN, REFUSED, TgtAdm, TgtError
from iosd_host.serve.tgtd import Tgtd, version_of_open

__all__ = ["Attached", "Places", "attach", "attached", "detach"]

TGTD_SOCKET = "/run/tgtd/socket"  # where tgtd has it unless TGT_IPC_SOCKET says otherwise
TGTD_CONTROL = 0
OTHERS_WRITE = 0o022
_PEER = struct.Struct("3i")  # of SO_PEERCRED: pid, uid, gid


@dataclass(frozen=True)
class Places:
    """Requests to tgtd.

    Attributes:
        config: the configuration file, which may be absent.
        settings: what it says, by full names.
        sandboxd: socket of iosd-sandboxd.
        pools: the file of pools, written here.
        control: the socket that the module makes, in a folder of tgtd's user.
    """

    config: Path
    settings: Mapping[str, Any]
    sandboxd: Path
    pools: Path
    control: Path


@dataclass(frozen=True)
class Attached:
    """The target that was made, as detach() needs it: the configuration may be another one by then.

    settings: those of the configuration that it was made by.
    """

    name: str
    portal: tuple[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)


def record_beside(pools: Path) -> Path:
    """The file that says what was attached, given the file of the pools."""
    return pools.with_name("attached")


def record(config: TargetConfig, places: Places) -> None:
    """Note what is attached by a configuration file."""
    fields = {
        "config": str(places.config),
        "name": config.name,
        "portal": config.portal,
        "settings": dict(places.settings),
    }
    write_whole(record_beside(places.pools), json.dumps(fields).encode() + b"\n", 0o644)


def attached(config: Path, pools: Path) -> Attached | None:
    """What was attached by that configuration file; None: it is not known."""
    try:
        found = json.loads(record_beside(pools).read_bytes())
        host, port = found["portal"]
        if found["config"] != str(config):
            return None
        return Attached(found["name"], (host, port), dict(found["settings"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def control_socket() -> Path:
    return Path(f"{os.environ.get('TGT_IPC_SOCKET', TGTD_SOCKET)}.{TGTD_CONTROL}")


def absent(path: Path, error: OSError) -> ProcessFailed:
    return ProcessFailed(f"no tgtd to talk to at {path} ({error.strerror}): start tgt.service")


def tgtd_uid() -> int | None:
    """The user of tgtd; None: ours.

    Raises:
        ProcessFailed: no tgtd runs.
    """
    path = control_socket()
    try:
        owner = path.stat().st_uid
    except OSError as error:
        raise absent(path, error) from None
    return None if owner == os.geteuid() else owner


def running_tgtd() -> Tgtd:
    """The daemon behind the control socket.

    One that cannot be inspected counts as a stock one, and so does a program that its user can change:
    the user who has the socket must not choose what we run.

    Raises:
        ProcessFailed: nobody listens there.
    """
    path = control_socket()
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
            ids = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    except OSError as error:
        raise absent(path, error) from None
    program = Path(f"/proc/{_PEER.unpack(ids)[0]}/exe")
    try:
        descriptor = os.open(program, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return Tgtd(program, "")
    try:
        found = os.fstat(descriptor)
        trusted = found.st_uid in (0, os.geteuid()) and not found.st_mode & OTHERS_WRITE
        return Tgtd(program, version_of_open(descriptor) if trusted else "")
    finally:
        os.close(descriptor)


def administrator(uid: int | None) -> TgtAdm:
    """That tgtd's control channel."""
    user = None if uid is None else (uid, group_of(uid))
    return TgtAdm(os.environ.get("TGT_IPC_SOCKET", TGTD_SOCKET), TGTD_CONTROL, user)


async def settle_portals(
    adm: TgtAdm, config: TargetConfig, others: Sequence[str], *, hardened: bool
) -> None:
    """Have tgtd listen on the configured portal alone, unless others need more or the network is trusted.

    tgtd starts with every address at port 3260. Anybody who reaches a portal of a stock one can end it or
    read its memory.

    Args: others: targets that are not ours, whose portals are not ours to close.  hardened: which tgtd.

    Raises:
        CannotServe: they need portals that we may not have beside us.
        ProcessFailed: the portal is taken.
    """
    wanted = config.portal
    open_now = await adm.portals()
    foreign = [each for each in open_now if each != wanted and not is_loopback(each[0])]
    if foreign and not config.unsafe_portal:
        names = ", ".join(format_portal(*each) for each in foreign)
        if others and not hardened:
            raise CannotServe(
                f"tgtd listens on {names} for {', '.join(others)}, and a stock tgtd is not safe "
                "against those who can reach it: serve those by another tgtd, or, on a trusted "
                "network, say unsafe_portal = true; the package iosd-tgtd has a tgtd that is safe"
            )
        for each in foreign if not others else ():
            await adm.close_portal(format_portal(*each))
            open_now.remove(each)
    wildcards = [each for each in open_now if each[0] in ("0.0.0.0", "::")]
    if wanted in open_now or any(port == wanted[1] for _, port in wildcards):
        return
    try:
        await adm.open_portal(format_portal(*wanted))
    except TgtError as error:
        raise ProcessFailed(f"tgtd cannot listen on {format_portal(*wanted)}: {error}") from None


def write_pools(config: TargetConfig, path: Path) -> None:
    """Whole or not at all, whatever is in its place; readable for tgtd."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = pools_file(with_default(config), config.memory_budget)
    write_whole(path, text.encode(), 0o644)


def prepare_control(folder: Path, uid: int | None, config: TargetConfig) -> int | None:
    """Let the manager's user reach the control socket; returns its id, None: there is none of its own.

    Packages make that user.  Without it the manager runs as tgtd's.
    """
    manager = uid_of(MANAGER_USER)
    if manager is None or config.manager is None or os.geteuid() != 0 or not folder.is_dir():
        return None
    open_control_folder(folder, 0 if uid is None else uid, manager)
    return manager


async def remove(adm: TgtAdm, number: int, name: str, wait_s: float) -> None:
    """Ask until tgtd agrees: it refuses while commands run, and each ends in bounded time.

    Raises: ProcessFailed: it has not agreed in time.
    """
    why = "no answer"
    try:
        async with asyncio.timeout(wait_s):
            while True:
                try:
                    return await adm.remove(number)
                except TgtError as error:
                    why = str(error)
                    await asyncio.sleep(0.05)
    except TimeoutError:
        text = f"{name} still has commands under way after {wait_s:g} s: {why}"
        raise ProcessFailed(text) from None


async def _attach(config: TargetConfig, places: Places, wait_s: float) -> str:
    uid = tgtd_uid()
    adm = administrator(uid)
    why = "it accepts no request"
    try:
        async with asyncio.timeout(wait_s):
            while said := await adm.silence():
                why = said
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise ProcessFailed(f"tgtd does not answer for {wait_s:g} s: {why}") from None
    hardened = running_tgtd().hardened
    check_portal(config, hardened=hardened)
    check_folders(config)
    targets = await adm.targets()
    others = [name for name in targets if name != config.name]
    await settle_portals(adm, config, others, hardened=hardened)
    before = places.pools.read_text() if places.pools.exists() else None
    write_pools(config, places.pools)
    signers = signers_beside(places.pools)
    listed = signers.read_text() if signers.exists() else None
    write_signers(signers_text(config.function_policy, config.function_signers), signers)
    if config.name in targets:
        same = (places.pools.read_text(), signers.read_text()) == (before, listed)
        if attached(places.config, places.pools) is None:
            record(config, places)
        return "there" if same else "changed"
    expect_store(config.data, config.master_key_file)
    for folder in filter(None, (config.data, config.ssd)):
        prepare_store(folder, uid)
    manager = prepare_control(places.control.parent, uid, config)
    number = 1 + max(targets.values(), default=0)
    isolation = config.isolation if config.sandboxes else None
    options = module_options(
        config, isolation, places.sandboxd, places.pools, places.control, manager
    )
    record(config, places)
    for user in config.chap_users:  # of an earlier time, perhaps with another secret
        with contextlib.suppress(TgtError):
            await adm.remove_account(user)
    try:
        await adm.create(
            config.name, str(config.data), options, config.initiators, config.chap, number
        )
    except TgtError as error:
        await remove(adm, number, config.name, wait_s)
        why = "journalctl -u tgt says why" if error.number == REFUSED else str(error)
        raise ProcessFailed(f"tgtd does not serve the store {config.data}: {why}") from None
    try:
        publish_credential(config, places)
    except CredentialError as error:
        await remove(adm, number, config.name, wait_s)
        raise ProcessFailed(str(error)) from None
    take_out(config.data, config.master_key_file)
    return "made"


def publish_credential(config: TargetConfig, places: Places) -> None:
    """Let this user's clients find the store's credential.  It stays until detach().

    Raises: CredentialError: its folder cannot be used.
    """
    key = take_key(local_key_file(places.control)) if config.local_credential else None
    if key is None:
        withdraw(config.portal, config.name)
    else:
        publish(key, config.portal, config.name, held=False).forget()


def tell(config: TargetConfig, control: Path) -> None:
    """Have the target read its pools again, through its manager where it has one.

    Raises:
        ConfigError: it refuses them, or its manager does not answer.
    """
    by, why = "osd target attach", "the configuration was read again"
    try:
        tell_target(control, by, why)
    except Managed:
        tell_manager(None, config.name, by, why)
    except OSError as error:
        raise ConfigError(f"the target does not answer at {control}: {error}") from None


def attach(config: TargetConfig, places: Places, wait_s: float) -> tuple[str, str]:
    """Make the target; one that is there reads its pools again where they have changed.

    Args: wait_s: how long tgtd may take to answer.

    Returns: its URL, and "made", "changed" or "there".

    Raises:
        CannotServe, ConfigError: the configuration cannot be served.
        ProcessFailed, paths.MissingComponent: tgtd is not there, or does not take it; it has no such
            target then.
    """
    if config.portal[1] == 0:
        raise CannotServe("portal: clients of a service need a port that stays: give one")
    try:
        what = asyncio.run(_attach(config, places, wait_s))
    except TgtError as error:
        raise ProcessFailed(str(error)) from None
    if what == "changed":
        tell(config, places.control)
    return f"iscsi://{format_portal(*config.portal)}/{config.name}/{LUN}", what


async def _detach(what: Attached, wait_s: float) -> bool:
    adm = administrator(tgtd_uid())
    number = (await adm.targets()).get(what.name)
    if number is None:
        return False
    await remove(adm, number, what.name, wait_s)
    withdraw(what.portal, what.name)
    return True


def detach(what: Attached, wait_s: float) -> bool:
    """Close the target's sessions and its store; tgtd goes on.

    Returns: whether it was there.

    Raises:
        ProcessFailed: tgtd does not answer, or the target's commands do not end.
    """
    try:
        return asyncio.run(_detach(what, wait_s))
    except TgtError as error:
        raise ProcessFailed(str(error)) from None
