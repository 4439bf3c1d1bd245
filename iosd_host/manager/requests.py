# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's requests (docs/control.md): bytes in, bytes out; one row a method.

A request is checked here against its row before its function runs.  Not here: the functions
(methods.py), the transport (server.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iosd_host.common.rate_limited_log import Limited
from iosd_host.config.schema import ConfigError, Key, check
from iosd_host.manager.keys import ADMIN, KeyHolder

__all__ = ["SCHEMA", "AdminRequest", "ManagerMethod", "RequestRefused", "Requests"]

LOG = logging.getLogger("iosd.requests")

SCHEMA = "iosd.admin/1"
ID_MOST = 64
USER_MOST = 128
WHY_MOST = 256
FIELDS = {"schema", "id", "method", "params", "user", "why"}


class RequestRefused(Exception):
    """An error answer.

    Args: code: a word of docs/control.md.  message: what is wrong.  remedy: what to do about it.
    """

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy

    def fields(self) -> dict[str, str]:
        """As it is answered."""
        found = {"code": self.code, "message": self.message, "remedy": self.remedy}
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True)
class AdminRequest:
    """A request that its row allows.

    Attributes:
        params: by name, converted; absent ones are None or their default.
        user: who the client says it is on its host; "" unknown.
        why: "" where none is given.
    """

    id: int | str | None
    method: str
    params: Mapping[str, Any]
    client: KeyHolder
    user: str = ""
    why: str = ""

    @property
    def who(self) -> str:
        """For the log of changes: the user, and the key that proves it is a client of ours."""
        return f"{self.user} ({self.client.name})" if self.user else self.client.name


@dataclass(frozen=True)
class ManagerMethod:
    """A row.

    Attributes:
        run: answers the result; raises RequestRefused.
        params: what there may be; `required` of them must be.
        changes: only an admin may.
    """

    name: str
    run: Callable[[AdminRequest], Awaitable[Any]]
    params: Sequence[Key] = ()
    required: Sequence[str] = ()
    changes: bool = False


class Requests:
    """The table at work."""

    def __init__(self, methods: Sequence[ManagerMethod]) -> None:
        self.methods = {method.name: method for method in methods}
        self.bad = Limited(LOG)

    async def answer(self, client: KeyHolder, body: bytes) -> bytes:
        """Answer any bytes; nothing is raised."""
        serial: int | str | None = None
        try:
            fields = decode(body)
            serial = id_of(fields)
            method = self._method(fields, client)
            result = await method.run(self._request(method, fields, serial, client))
            return encode({"schema": SCHEMA, "id": serial, "result": result})
        except RequestRefused as error:
            self.bad.warning("%r of %s: %s", serial, client.name or "nobody", error.message)
            return encode({"schema": SCHEMA, "id": serial, "error": error.fields()})
        except Exception:
            LOG.exception("our fault: a request of %s", client.name)
            fault = RequestRefused("internal", "the manager failed at this", "its log says how")
            return encode({"schema": SCHEMA, "id": serial, "error": fault.fields()})

    def _method(self, fields: Mapping[str, Any], client: KeyHolder) -> ManagerMethod:
        schema = fields.get("schema")
        if schema != SCHEMA:
            raise RequestRefused(
                "version",
                f"a request has schema {SCHEMA}, this one {schema!r:.64}",
                "use tools of the manager's version",
            )
        name = fields.get("method")
        method = self.methods.get(name) if isinstance(name, str) else None
        if method is None:
            there = ", ".join(self.methods)
            raise RequestRefused("unknown-method", f"no method {name!r:.64}", f"there are: {there}")
        if not client.role:
            raise RequestRefused(
                "not-permitted", "this key is not authorized any more", "ask an administrator"
            )
        if method.changes and client.role != ADMIN:
            raise RequestRefused(
                "not-permitted",
                f"'{client.name}' has read access only ({name})",
                f"role = {ADMIN} in authorized/{client.name}.key of the manager's keys, "
                "and SIGHUP to it",
            )
        return method

    @staticmethod
    def _request(
        method: ManagerMethod,
        fields: Mapping[str, Any],
        serial: int | str | None,
        client: KeyHolder,
    ) -> AdminRequest:
        unknown = sorted(set(fields) - FIELDS)
        if unknown:
            raise RequestRefused("bad-request", f"a request has no field {unknown[0]!r:.64}")
        table = fields.get("params", {})
        try:
            params = check(table, method.params, method.name, "params")
        except ConfigError as error:
            raise RequestRefused("bad-params", str(error)) from None
        for name in method.required:
            if params[name].value is None:
                raise RequestRefused("bad-params", f"{method.name}: params lack '{name}'")
        values = {name: setting.value for name, setting in params.items()}
        user = line(fields, "user", USER_MOST)
        return AdminRequest(
            serial, method.name, values, client, user, line(fields, "why", WHY_MOST)
        )


def decode(body: bytes) -> dict[str, Any]:
    """The JSON object.  Raises: RequestRefused, whatever the bytes are."""

    def no_number(text: str) -> Any:
        raise ValueError(f"{text} is no number")

    try:
        fields = json.loads(body.decode("utf-8"), parse_constant=no_number)
        json.dumps(fields, ensure_ascii=False).encode(
            "utf-8"
        )  # halves of surrogate pairs are no text
    except (ValueError, RecursionError) as error:
        raise RequestRefused(
            "bad-request", f"no JSON: {error!s:.100}", "a request is one JSON object in UTF-8"
        ) from None
    if not isinstance(fields, dict):
        raise RequestRefused("bad-request", "a request is one JSON object")
    return fields


def encode(fields: Mapping[str, Any]) -> bytes:
    """The answer's bytes."""
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", errors="replace")


def id_of(fields: Mapping[str, Any]) -> int | str | None:
    """Field that the answer repeats."""
    serial = fields.get("id")
    if isinstance(serial, bool) or not isinstance(serial, int | str | None):
        raise RequestRefused("bad-request", "id is a number or a text")
    if (isinstance(serial, str) and len(serial) > ID_MOST) or (
        isinstance(serial, int) and not -(2**63) <= serial < 2**63
    ):
        raise RequestRefused("bad-request", f"id has at most {ID_MOST} characters or 64 bits")
    return serial


def line(fields: Mapping[str, Any], name: str, most: int) -> str:
    """A text of one line; "" if it is absent."""
    found = fields.get(name) or ""
    if not isinstance(found, str) or len(found.encode()) > most or not (found + "x").isprintable():
        raise RequestRefused("bad-request", f"{name} is a text of one line, at most {most} bytes")
    return found
