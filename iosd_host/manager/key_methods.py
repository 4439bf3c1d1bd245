# SPDX-License-Identifier: GPL-2.0-or-later
"""The requests keys.ls, keys.add and keys.rm: list, add and remove clients while the manager runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from iosd_host.config.schema import Choice, Key, text
from iosd_host.manager.keys import (
    ADMIN,
    KEY,
    LOCAL,
    VIEWER,
    ClientKeys,
    CurvePair,
    KeyHolder,
    name_fault,
    write_key,
)
from iosd_host.manager.requests import AdminRequest, ManagerMethod, RequestRefused
from iosd_host.manager.state_store import Change

__all__ = ["key_methods"]

WHO = Key("name", text, None, "of a client")
PARAMS = (
    WHO,
    Key("role", Choice(ADMIN, VIEWER), VIEWER, "what it may do"),
    Key("public", text, None, "its public key, Z85"),
)


def key_methods(keys: ClientKeys, log: Callable[[Change], Awaitable[Any]]) -> list[ManagerMethod]:
    """The rows of these requests.  log: writes a line to the log of changes."""
    of = _KeyRequests(keys, log)
    return [
        ManagerMethod("keys.ls", of.ls),
        ManagerMethod("keys.add", of.add, PARAMS, ("name", "public"), changes=True),
        ManagerMethod("keys.rm", of.rm, (WHO,), ("name",), changes=True),
    ]


class _KeyRequests:
    """Carries the requests out."""

    def __init__(self, keys: ClientKeys, log: Callable[[Change], Awaitable[Any]]) -> None:
        self._keys, self._log = keys, log

    async def ls(self, request: AdminRequest) -> Any:
        found = sorted(self._keys.clients.items(), key=lambda item: item[1].name)
        return {"keys": [vars(client) | {"public": public} for public, client in found]}

    async def add(self, request: AdminRequest) -> Any:
        name, role, public = (request.params[key] for key in ("name", "role", "public"))
        keys = self._keys
        if fault := name_fault(name):
            raise RequestRefused("bad-value", fault)
        if not KEY.fullmatch(public):
            raise RequestRefused("bad-value", "a public key has 40 characters in Z85")
        if keys.who(public):
            raise RequestRefused(
                "bad-value", f"this is the key of '{keys.clients[public].name}' already"
            )
        if self._find(name) is not None:
            raise RequestRefused(
                "bad-value", f"there is a key of '{name}'", f"osd manager keys rm {name}"
            )
        try:
            write_key(keys.authorized / f"{name}.key", CurvePair(public), role)
        except OSError as error:
            raise RequestRefused("failed", f"cannot write the key: {error.strerror}") from None
        await self._changed(request, "none", role)
        return {"name": name, "role": role}

    async def rm(self, request: AdminRequest) -> Any:
        name, keys = request.params["name"], self._keys
        client = self._find(name)
        if client is None:
            there = ", ".join(sorted(each.name for each in keys.clients.values()))
            raise RequestRefused("no-such-key", f"no key of '{name}'", f"there are: {there}")
        admins = [each for each in keys.clients.values() if each.role == ADMIN]
        if client in admins and len(admins) == 1:
            raise RequestRefused("bad-value", f"'{name}' is the last that may change anything")
        try:
            (keys.authorized / f"{name}.key").unlink()
            if name == LOCAL:
                keys.local.unlink(missing_ok=True)
        except OSError as error:
            raise RequestRefused("failed", f"cannot remove the key: {error.strerror}") from None
        await self._changed(request, client.role, "none")
        return {"name": name, "role": client.role}

    def _find(self, name: str) -> KeyHolder | None:
        return next((each for each in self._keys.clients.values() if each.name == name), None)

    async def _changed(self, request: AdminRequest, was: str, now: str) -> None:
        """Use the changed keys, and log the change."""
        self._keys.reload()
        name = str(request.params["name"])
        change = Change("", request.method, request.who, request.why, {name: was}, {name: now})
        await self._log(change)
