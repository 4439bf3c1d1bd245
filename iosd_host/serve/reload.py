# SPDX-License-Identifier: GPL-2.0-or-later
"""Reloads the configuration of a target while it serves.

A reload applies the whole configuration or nothing.  Changes of pools go to iosd-sandboxd and the
target, changes of scaling to the resource manager.  Other changes take effect at the next start and
are listed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from iosd_host.common import logs, places
from iosd_host.common.users import described
from iosd_host.config.differences import compare, lines_of
from iosd_host.config.files import Config
from iosd_host.config.schema import ConfigError, Setting
from iosd_host.config.source import Source
from iosd_host.control.messages import ErrorCode, FrameError, TargetError, Type
from iosd_host.control.supervisor import LINE_MOST
from iosd_host.control.tool_link import ToolLink

__all__ = ["Managed", "Reloader", "tell_manager", "tell_target"]

TARGET_S = 10.0  # for the target to read its pools


class Managed(Exception):
    """The target takes changes from its manager alone."""


def tell_target(control: Path, by: str, why: str) -> None:
    """Have a target read its pools file again, as a tool does (docs/control.md).

    Raises:
        Managed: it has a manager, who must do that.
        ConfigError: it refuses the file, and serves as before.
        OSError: nobody is there.
    """
    try:
        with contextlib.closing(ToolLink(control, by, TARGET_S)) as link:
            link.ask(Type.RELOAD, by=by, why=why or None)
    except TargetError as error:
        if error.code == ErrorCode.MANAGED:
            raise Managed(error.message) from None
        raise ConfigError(f"the target refuses it: {error.message}") from None
    except FrameError as error:
        raise ConnectionError(str(error)) from None


def tell_manager(url: str | None, target: str, by: str, why: str) -> None:
    """Have the manager of a target do the same (config.apply).

    Args: url: of the manager; None: the one here that manages the target.

    Raises: ConfigError: it or the target refuses, or it was not found.
    """
    from iosd_host.manager.client import ManagerClient, ManagerError

    here = [each["url"] for each in places.running(places.MANAGER) if target in each["targets"]]
    try:
        with ManagerClient.find(
            url or (here[0] if len(here) == 1 else None), timeout_s=TARGET_S
        ) as manager:
            manager.ask("config.apply", target=target, user=by, why=why)
    except ManagerError as error:
        raise ConfigError(f"the resource manager: {error}") from None


Apply = Callable[[Config, str, str], Awaitable[None]]
"""Has a configuration hold, told who wants that and why.  Raises ConfigError; nothing has changed then."""


class Reloader:
    """The configuration of one supervisor.

    Args:
        source: of the configuration it has started with.
        apply: has another one hold.
        users: who may ask, besides root and us.
    """

    def __init__(self, source: Source, apply: Apply, users: frozenset[int] = frozenset()) -> None:
        self.source = source
        self.apply = apply
        self.users = users | {0, os.geteuid()}
        self.config, self.settings = source.read()
        self.lock = asyncio.Lock()
        self.reloads = 0
        self.started = round(time.time() * 1000)
        self.place: places.PlaceFile | None = None
        self.listener: asyncio.Server | None = None
        self.about: dict[str, Any] = {}

    async def listen(self, path: Path, **about: Any) -> None:
        """Answer there, and say so below /run/iosd with what else is known: url, name, manager."""
        self.listener = await asyncio.start_unix_server(self._answer, path, limit=LINE_MOST)
        path.chmod(0o666)  # _one() checks the peer's user
        self.about = {**about, "socket": str(path)}
        try:
            self.place = places.PlaceFile(places.own_path(places.TARGET))
        except OSError as error:
            say("warning", f"administrators do not find us: {error}")
        self._publish()

    def _hold(self, config: Config, settings: dict[str, Setting]) -> None:
        self.config, self.settings = config, settings
        self._publish()

    def _publish(self) -> None:
        if self.place is None:
            return
        path = self.source.path
        rows = [
            {"key": key, "value": each.value, "origin": each.origin}
            for key, each in self.settings.items()
        ]
        self.place.write(
            {
                "schema": places.SCHEMAS[places.TARGET],
                "pid": os.getpid(),
                **self.about,
                "config": path and str(path.resolve()),
                "flags": self.source.fields(),
                "settings": rows,
                "reloads": self.reloads,
                "started": self.started,
            }
        )

    async def close(self) -> None:
        """Answer no more."""
        if self.listener is not None:
            self.listener.close()  # who is still connected must not keep us
        if self.place is not None:
            self.place.close()

    async def reload(self, by: str, why: str) -> dict[str, Any]:
        """Read the configuration again and have it hold; what is different, as config.reload answers it.

        Raises:
            ConfigError: it is wrong, and nothing has changed.
        """
        async with self.lock:
            before = self.config, self.settings
            try:
                config, settings = self.source.read()
                for pool in config.pools:
                    check_packages(pool.name, pool.missing, self.config)
                different = compare(self.settings, settings).fields()
                # Settings that need a restart remain as they were, and are listed as different
                # until then.
                for key in (row["key"] for row in different["restart"]):
                    settings.pop(key, None)
                    settings |= {key: self.settings[key]} if key in self.settings else {}
                self._hold(config, settings)
                await self.apply(config, by, why)  # the manager reads what we have said to hold
            except (ConfigError, OSError) as error:
                with contextlib.suppress(OSError):
                    self._hold(*before)
                say("error", f"{by}: the configuration is as it was: {error}")
                if isinstance(error, ConfigError):
                    raise
                raise ConfigError(f"cannot write what is served: {error}") from None
            self.reloads += 1
            self._publish()
            lines = [*lines_of(different)]
            say("info", f"{by}: configuration read again, {len(lines)} differences. {why}".rstrip())
            for line in lines:
                say("info", line)
            return different

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._one(reader, writer.get_extra_info("socket"))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError):
            pass  # who asked has gone, or has sent a line without end
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, link: socket.socket) -> dict[str, Any]:
        def error(code: str, message: str) -> dict[str, Any]:
            return {"error": {"code": code, "message": message}}

        _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid not in self.users:
            return error("not-permitted", f"{described(uid)} may not ask this supervisor")
        try:
            asked = json.loads(await reader.readline())
            method, by, why = asked["method"], str(asked["by"]), str(asked.get("why") or "")
        except (ValueError, TypeError, KeyError):
            return error("bad-request", "a request is a line of JSON with method and by")
        if method != "reload":
            return error("unknown-method", f"no method {method!r:.64}; there is: reload")
        try:
            return {"result": await self.reload(by, why)}
        except ConfigError as wrong:
            return error("bad-value", str(wrong))


def check_packages(name: str, missing: str, before: Config) -> None:
    """Refuse a pool that would not serve, if it has not been so before.  Raises: ConfigError."""
    was = {pool.name: pool.missing for pool in before.pools}
    if missing and not was.get(name):
        raise ConfigError(f"pool '{name}' would not serve: {missing}")


def say(level: str, text: str) -> None:
    """A line of the log."""
    with contextlib.suppress(OSError):
        logs.say("iosd-supervisor", level, text)
