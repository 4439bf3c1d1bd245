# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve`: tgtd with our module, iosd-sandboxd, and iosd-manager, in the foreground.

Prepares the folders, starts them, makes the target, restarts what dies, ends everything in order.
The store is safe against kill -9 of any of them, so nothing here is needed for its safety.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iosd_host.common import logs, paths
from iosd_host.common.held_port import HeldPort
from iosd_host.common.run_folder import RunFolder
from iosd_host.common.users import group_of, manager_uid
from iosd_host.common.whole_file import write_whole
from iosd_host.config.files import Config
from iosd_host.config.pools import DEFAULT, Pool, check_pools, make_pool
from iosd_host.config.schema import ConfigError, Setting
from iosd_host.config.source import Source
from iosd_host.serve.local_credential import CredentialError, Published, publish, take_key, withdraw
from iosd_host.serve.manager_process import ManagerService, ManagerTarget
from iosd_host.serve.master_key import take_out
from iosd_host.serve.parts import (
    TargetConfig,
    local_key_file,
    module_options,
    pools_file,
    sandboxd_command,
)
from iosd_host.serve.preconditions import (
    CannotServe,
    check_folders,
    check_portal,
    choose_isolation,
    expect_store,
    give,
    open_control_folder,
    portal_fault,
    prepare_store,
    program_root,
    run_root,
)
from iosd_host.serve.process import ProcessFailed, SupervisedProcess, as_user, terminate
from iosd_host.serve.reload import Managed, Reloader, tell_manager, tell_target
from iosd_host.serve.scope import in_scope
from iosd_host.serve.signers import signers_beside, signers_text, write_signers
from iosd_host.serve.tgtadm import LUN, REFUSED, TgtAdm, TgtError
from iosd_host.serve.tgtd import STOCK, Tgtd, find_tgtd

__all__ = ["plain_environment", "serve"]

SANDBOXD_READY = "ready "  # and the level
OPEN_FILES = 65536  # the data files of open objects
# As its unit: commands end, and the store writes what its database has in memory.
TGTD_SHUTDOWN_S = 20.0
TGTD_NOISE = (
    "iser_ib_init",
    "oom-killer's pardon",
    "adjust nr_open",
    "work_timer_start",
    "use signalfd notification",
    "device_mgmt",
)


class Supervisor:
    """iosd-sandboxd, tgtd and the manager, their folders, and the order of start and end."""

    def __init__(
        self, config: TargetConfig, daemon: Tgtd, announce: Callable[[dict[str, Any]], None]
    ) -> None:
        self.config = config
        self.daemon = daemon
        self.announce = announce
        self.held = HeldPort(*config.portal)
        self.port = self.held.port
        self.pools = with_default(config)
        self.signers = signers_text(config.function_policy, config.function_signers)
        self.level = config.isolation if config.sandboxes else None  # once it runs, what it has
        root = run_root()
        programs = program_root(root)
        self.folders = [RunFolder(each) for each in dict.fromkeys((root, programs))]
        self.run, self.programs = self.folders[0].path, self.folders[-1].path
        self.services: list[SupervisedProcess] = []
        self.module = self.programs / paths.MODULE.name
        self.ipc = self.run / "tgt"
        self.sandboxd_socket = self.run / "sandboxd"
        self.control = self.run / "control" / "socket"
        self.credential: Published | None = None
        self.manager: ManagerService | None = None
        self.manager_uid: int | None = None
        if config.manager is not None:
            managed = self._managed_target(config.manager)
            self.manager_uid = managed.uid
            self.manager = ManagerService(
                managed,
                self.run / "manager",
                config.manager,
                lambda again: announce(self.description("restarted" if again else "managed")),
            )

    def _managed_target(self, settings: Mapping[str, Setting]) -> ManagerTarget:
        """Settings of the manager, and its user. Under root this is another user than tgtd's."""
        config, inside = self.config, self.config.data / "manager"
        if config.uid is None:
            return ManagerTarget(config.name, self.control, inside)
        beside = config.data.with_name(f"{config.data.name}-manager")
        state = Path(settings["state"].value or beside)
        uid = manager_uid(config.data, state, config.uid)
        return ManagerTarget(
            config.name, self.control, beside, uid, target_uid=config.uid, moved_from=inside
        )

    def prepare(self) -> None:
        """Make the folders of the run, owned by those who write to them."""
        uid = self.config.uid
        self.run.chmod(0o755)
        self.programs.chmod(0o755)
        self.ipc.mkdir(mode=0o700)
        self.control.parent.mkdir(mode=0o700)
        # Copies: the source tree may lie where tgtd's user cannot look.
        shutil.copy(self.config.module or paths.find_component(paths.MODULE), self.module)
        self.module.chmod(0o644)
        self.program = self.daemon.path
        if self.daemon.kind != STOCK:
            self.program = Path(shutil.copy(self.program, self.programs / paths.TGTD.name))
            self.program.chmod(0o755)
        if uid is not None:
            give(self.ipc, uid, group_of(uid))
            open_control_folder(self.control.parent, uid, self.manager_uid)

    def sandboxd(self) -> SupervisedProcess:
        """iosd-sandboxd, ready when it says its level; a restart has that level, or fails."""
        pools = self.write_pools()

        def command() -> list[str]:
            words = sandboxd_command(self.config, self.sandboxd_socket, str(self.level), pools)
            # If we are killed, it ends its sandboxes and itself.
            return in_scope(["setpriv", "--pdeathsig", "TERM", "--", *words])

        async def ready() -> None:
            while service.said is None:
                await asyncio.sleep(0.01)
            self.level = service.said.removeprefix(SANDBOXD_READY)
            service.command = command()

        service = SupervisedProcess(
            "iosd-sandboxd",
            command(),
            plain_environment(),
            ready,
            terminate,
            self._came_up,
            sign=SANDBOXD_READY,
        )
        return service

    def write_pools(self) -> Path:
        """The file in which the module and iosd-sandboxd find their pools; the signers beside it."""
        path = self.run / "pools"
        write_signers(self.signers, signers_beside(path))
        write_whole(path, pools_file(self.pools, self.config.memory_budget).encode(), 0o644)
        return path

    def tgtd(self) -> SupervisedProcess:
        """tgtd, ready when the portal takes connections."""
        environment = plain_environment() | {"TGT_IPC_SOCKET": str(self.ipc / "s")}
        user = as_user(self.config.uid)
        ids = None if self.config.uid is None else (self.config.uid, group_of(self.config.uid))
        adm = TgtAdm(str(self.ipc / "s"), user=ids)
        files = min(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        limits = ["prlimit", "--core=0", f"--nofile={files}:{files}"]

        def command() -> list[str]:
            portal = f"portal={format_portal(self.config.portal[0], self.port)}"
            preload = ["env", f"LD_PRELOAD={self.module}", "IOSD_CONFINE=1"]
            return [*limits, *user, *preload, str(self.program), "-f", "-C", "1", "--iscsi", portal]

        async def ready() -> None:
            await self._make_target(adm)
            service.command = command()  # a restart takes the port that clients know

        async def end(process: asyncio.subprocess.Process) -> None:
            await shut_down_tgtd(adm)

        service = SupervisedProcess(
            "tgtd",
            command(),
            environment,
            ready,
            end,
            self._came_up,
            TGTD_NOISE,
            patience=TGTD_SHUTDOWN_S,
        )
        return service

    async def _make_target(self, adm: TgtAdm) -> None:
        portals = await adm.first_portals()
        host = self.config.portal[0]
        # If its portal is not available, tgtd uses all addresses and port 3260 instead.
        if len(portals) != 1 or portals[0][0] != host or self.port not in (0, portals[0][1]):
            raise ProcessFailed(portal_fault(host, format_portal(host, self.port)))
        self.port = portals[0][1]
        config = self.config
        options = module_options(
            config,
            self.level,
            self.sandboxd_socket,
            self.write_pools(),
            self.control,
            self.manager_uid,
        )
        try:
            await adm.create(config.name, str(config.data), options, config.initiators, config.chap)
        except TgtError as error:
            why = "" if error.number == REFUSED else f": {error}"  # tgtd's own last words follow
            raise ProcessFailed(f"tgtd does not open the store {config.data}{why}") from None
        self._publish_credential()
        await wait_for_connection(host, self.port)
        take_out(config.data, config.master_key_file)

    def _publish_credential(self) -> None:
        """Let clients of this user find the store's credential; they find none where there is none.

        Raises: ProcessFailed: its folder cannot be used.
        """
        portal = (self.config.portal[0], self.port)
        try:
            key = take_key(local_key_file(self.control)) if self.config.local_credential else None
            if self.credential is not None and self.credential.key == key:
                return
            if self.credential is not None:
                self.credential.close()
                self.credential = None
            if key is None:
                withdraw(portal, self.config.name)
            else:
                self.credential = publish(key, portal, self.config.name)
        except CredentialError as error:
            raise ProcessFailed(str(error)) from None

    def _came_up(self, again: bool) -> None:
        if again:
            self.announce(self.description("restarted"))

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"iscsi://{format_portal(self.config.portal[0], self.port)}/{self.config.name}/{LUN}"

    def description(self, event: str) -> dict[str, Any]:
        """Fields of a line "iosd.target/1", for clients and tests."""
        services = [*self.services, *([self.manager.service] if self.manager else [])]
        return {
            "schema": "iosd.target/1",
            "event": event,
            "url": self.url,
            "data": str(self.config.data),
            "master_key": str(self.config.master_key_file),
            "isolation": self.level,
            "tgtd": self.daemon.fields(),
            "control": str(self.ipc / "s"),  # TGT_IPC_SOCKET, for tgtadm -C 1
            "manager": self.manager and self.manager.fields(),
            "credential": self.credential and str(self.credential.path),
            "pids": {service.name: service.pid for service in services},
        }

    async def take(self, config: Config, by: str, why: str) -> None:
        """Serve with another configuration's pools, as far as that needs no restart.

        Raises:
            ConfigError: they cannot be served, or the target refuses; all is as before.
        """
        try:
            pools = with_default(replace(self.config, pools=config.pools))
        except CannotServe as error:
            raise ConfigError(str(error)) from None
        policy, signers = (
            config.target[f"function_{each}"].value for each in ("policy", "signers")
        )
        before = self.pools, self.config, self.signers
        after = replace(self.config, memory_budget=config.memory_budget)
        try:
            self._use(pools, after, signers_text(policy, signers))
            await self._tell(by, why)
        except (ConfigError, OSError) as error:
            with contextlib.suppress(OSError):  # the files of before are there still
                self._use(*before)
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"cannot write the pools: {error}") from None

    def _use(self, pools: tuple[Pool, ...], config: TargetConfig, signers: str) -> None:
        """Write them to the file and have iosd-sandboxd read it; the target has not read it yet."""
        self.pools, self.config, self.signers = pools, config, signers
        if self.level is not None:
            self.write_pools()
            for service in self.services:
                if service.name == "iosd-sandboxd" and service.pid:
                    os.kill(service.pid, signal.SIGHUP)

    async def _tell(self, by: str, why: str) -> None:
        """Have the target read its pools again, through its manager where it has one."""
        if self.level is not None:  # else there are no pools; but workers
            try:
                await asyncio.to_thread(tell_target, self.control, by, why)
            except Managed:
                url = self.manager.url if self.manager else None
                await asyncio.to_thread(tell_manager, url, self.config.name, by, why)
                return
            except OSError as error:
                why = f"the target reads it when it starts: {error}"
                logs.say("iosd-supervisor", "warning", why)
        # Also one that has lost its place for a moment: it comes back with what it has read.
        if self.manager is not None and self.manager.service.pid:
            os.kill(self.manager.service.pid, signal.SIGHUP)

    async def start(self) -> None:
        """Start all services in order; the target can be used then.

        Raises:
            ProcessFailed, CannotServe, paths.MissingComponent: nothing of ours runs any more.
        """
        self.prepare()
        if self.config.sandboxes:
            service = self.sandboxd()
            self.services.append(service)  # a reload of the pools meanwhile is for it, too
            try:
                await service.start()
            except ProcessFailed:  # perhaps for want of isolation: that has words of its own
                choose_isolation(self.config.isolation, self.config.uid_base)
                raise
        expect_store(self.config.data, self.config.master_key_file)
        for folder in filter(None, (self.config.data, self.config.ssd)):
            prepare_store(folder, self.config.uid)
        service = self.tgtd()
        await service.start()
        self.services.append(service)

    async def stop(self) -> None:
        """End the manager, then tgtd, since its jobs use the sandboxes; then the rest."""
        if self.manager is not None:
            await self.manager.stop()
        for service in reversed(self.services):
            service.stopping = True
        for service in reversed(self.services):
            await service.stop()
        self.held.close()
        if self.credential is not None:
            self.credential.close()
        for folder in self.folders:
            folder.remove()


def with_default(config: TargetConfig) -> tuple[Pool, ...]:
    """The pools, `default` among them.

    Raises:
        CannotServe: together they are more than can be served.
    """
    pools = config.pools
    if all(pool.name != DEFAULT for pool in pools):
        pools = (make_pool(DEFAULT, (), Path()), *pools)
    try:
        pools = check_pools(pools, config.memory_budget)
    except ConfigError as error:
        raise CannotServe(str(error)) from None
    for pool in pools:
        if pool.missing:
            logs.echo(f"pool {pool.name} will not serve: {pool.missing}", err=True)
    return pools


async def shut_down_tgtd(adm: TgtAdm) -> None:
    """Ask until tgtd agrees: it refuses while commands run, and each ends in bounded time."""
    said = ""
    while await adm.alive():
        try:
            await adm.shut_down()
            return
        except TgtError as error:
            if str(error) != said:
                logs.say("iosd-supervisor", "info", f"tgtd continues for now: {error}")
            said = str(error)
        await asyncio.sleep(0.05)


async def wait_for_connection(host: str, port: int) -> None:
    """Return when somebody listens there."""
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


def plain_environment() -> dict[str, str]:
    """The few variables that daemons may know of ours; LD_PRELOAD is for tgtd alone."""
    keep = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", *logs.ENVIRONMENT)
    return {key: os.environ[key] for key in keep if key in os.environ}


def format_portal(host: str, port: int) -> str:
    """HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def has_terminal() -> bool:
    """Whether there is a controlling terminal; one that has hung up is none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def heed_hangup(reloader: Reloader, asked_to_stop: asyncio.Event) -> Callable[[], None]:
    """Effect of SIGHUP: the terminal of the start was closed, or somebody requested a reload.  Under nohup
    the end of the terminal has no effect.
    """
    kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    terminal, tasks = has_terminal() and not kept, set[asyncio.Task[None]]()

    async def reload() -> None:
        with contextlib.suppress(ConfigError):  # which is logged
            await reloader.reload("SIGHUP", "")

    def heed() -> None:
        if terminal and not has_terminal():
            asked_to_stop.set()
            return
        tasks.add(task := asyncio.create_task(reload()))
        task.add_done_callback(tasks.discard)

    return heed


async def _serve(
    config: TargetConfig, daemon: Tgtd, announce: Callable[[dict[str, Any]], None], source: Source
) -> None:
    logs.say("iosd-supervisor", "info", str(daemon))
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):  # before there is a folder to remove
        loop.add_signal_handler(number, asked_to_stop.set)
    supervisor = Supervisor(config, daemon, announce)
    users = frozenset(filter(None, (supervisor.manager_uid,)))
    reloader = Reloader(source, supervisor.take, users)
    loop.add_signal_handler(signal.SIGHUP, heed_hangup(reloader, asked_to_stop))
    stop = asyncio.create_task(asked_to_stop.wait())
    start = asyncio.create_task(supervisor.start())
    try:
        await asyncio.wait((start, stop), return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            start.cancel()
            await asyncio.wait((start,))
            return
        start.result()
        await reloader.listen(
            supervisor.run / "supervisor",
            url=supervisor.url,
            name=config.name,
            control=str(supervisor.control),
            tgtd=daemon.fields(),
            manager=supervisor.manager and supervisor.manager.url,
        )
        announce(supervisor.description("ready"))
        watchers = [asyncio.create_task(service.supervise()) for service in supervisor.services]
        if supervisor.manager is not None:
            watchers.append(asyncio.create_task(supervisor.manager.run()))
        await stop
        for watcher in watchers:
            watcher.cancel()
        await asyncio.wait(watchers)
    finally:
        stop.cancel()
        await reloader.close()
        await supervisor.stop()
    announce(supervisor.description("stopped"))


def serve(config: TargetConfig, announce: Callable[[dict[str, Any]], None], source: Source) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the terminal; SIGHUP: read the configuration again.

    Args:
        config: what to serve.
        announce: called with the fields of an "iosd.target/1" line when the target is ready, when a
            part was restarted, and at the end.
        source: where what it serves comes from.

    Raises:
        CannotServe, ProcessFailed, paths.MissingComponent: it could not start; nothing is left running.
    """
    daemon = find_tgtd(config.tgtd)
    check_portal(config, hardened=daemon.hardened)
    check_folders(config)
    os.umask(0o022)  # parts run as users of their own; what they must not read says so itself
    if sys.version_info < (3, 12):
        # The default watcher of Python 3.11 makes a thread a child, and our children end with the
        # thread that made them.
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    asyncio.run(_serve(config, daemon, announce, source))
