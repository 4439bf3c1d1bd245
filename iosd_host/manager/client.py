# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of the resource manager: one request, one answer (docs/control.md).

    with ManagerClient.find() as manager:
        manager.ask("pool.scale", pool="default", active=4, why="a demonstration")

Synchronous; one thread a client.  Every failure is a ManagerError, which has an exit code for programs.
"""

from __future__ import annotations

import getpass
import itertools
import json
import os
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from iosd_host.common import places
from iosd_host.manager.keys import CurvePair, KeysError, read_file, read_key

__all__ = ["SCHEMA", "ManagerAccess", "ManagerClient", "ManagerError", "make_pair"]

SCHEMA = "iosd.admin/1"
TIMEOUT_S = 5.0
STEP_S = 0.05
HANG_UPS = 3
EVENT = struct.Struct("=Hi")  # first frame of a monitor's message: event, value
ANSWER_MOST = 64 << 20
KEY_FILE = Path("iosd", "manager.key_secret")  # below ~/.config

# Exit codes of a program by kind of error (69 unreachable, 77 not permitted ...).
EXIT_CODES = {
    "several": 2,
    "bad-request": 2,
    "standby": 18,
    "no-such-target": 66,
    "no-such-pool": 66,
    "no-such-key": 66,
    "unreachable": 69,
    "no-target": 69,
    "internal": 1,
    "not-permitted": 77,
    "bad-params": 78,
    "bad-value": 78,
    "key": 78,
}


class ManagerError(Exception):
    """The manager cannot be reached, or refuses.

    Args:
        code: a word of docs/control.md, or unreachable, several, key.
        message: the error in words.
        remedy: what to do; "": not known.
    """

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.remedy = remedy

    @property
    def exit_code(self) -> int:
        """The exit code of the program; 1: the error has no code of its own."""
        return EXIT_CODES.get(self.code, 1)


@dataclass(frozen=True)
class ManagerAccess:
    """A manager's address, its public key, and our own pair of keys."""

    url: str
    server: str
    key: CurvePair


def make_pair() -> CurvePair:
    """A new pair of keys."""
    public, secret = zmq.curve_keypair()
    return CurvePair(public.decode("ascii"), secret.decode("ascii"))


def users_key() -> Path:
    """File of the key that an administrator has given to the user."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / KEY_FILE


def find(
    url: str | None = None,
    key_file: Path | None = None,
    timeout_s: float = TIMEOUT_S,
    target: str | None = None,
) -> ManagerAccess:
    """The selected manager, and our key for it.

    Args:
        url: of the manager; None: IOSD_MANAGER, else that of the target, else the one that runs here,
            else the key file's.
        key_file: None: IOSD_MANAGER_KEY, else the manager's own where we may read it, else the user's.
        timeout_s: for one that is just starting.
        target: URL of the target that is meant, if one is said.

    Raises:
        ManagerError: there is none, or more than one, or nobody listens; there is no key, or it
            cannot be used.
    """
    url = url or os.environ.get("IOSD_MANAGER")
    said = os.environ.get("IOSD_MANAGER_KEY")
    file = key_file or (Path(said) if said else None)
    place = _running().get(url or "") or _beside(None if url else target, url, timeout_s)
    if place is None and url is None:
        for each in filter(None, (file, users_key() if users_key().exists() else None)):
            url = url or _fields(each).get("url")
        place = None if url and not _running() else _only(_running())
    if place is not None:
        url = str(place["url"])
        local = Path(str(place.get("key_file", "")))
        file = file or (local if os.access(local, os.R_OK) else None)
    assert url is not None
    _probe(url, timeout_s)
    return _access(url, place, file or users_key())


def _running() -> dict[str, dict[str, Any]]:
    return {str(each.get("url")): each for each in places.running(places.MANAGER)}


def _beside(target: str | None, url: str | None, timeout_s: float) -> dict[str, Any] | None:
    """The manager that serves a target of this host; None: no target names one.

    A supervisor names it before it runs, and during its restart.

    Args: target: its URL, with or without the LUN, or its name; None: the only one.  url: of the manager;
        None: any.

    Raises:
        ManagerError: it does not come up, or the target named has none.
    """
    served = [
        each
        for each in places.running(places.TARGET)
        if target in (None, each["url"], each["url"].rpartition("/")[0], each["name"])
        and url in (None, each.get("manager"))
    ]
    if len(served) != 1:
        return None
    url = served[0].get("manager")
    until = time.monotonic() + timeout_s
    while url is not None and url not in _running():
        if time.monotonic() > until:
            raise ManagerError(
                "unreachable", f"the resource manager of {served[0]['url']} is not up"
            )
        time.sleep(STEP_S)
    if url is None and target is not None and not _running():
        raise ManagerError(
            "unreachable", f"{target} is served without a resource manager (--no-manager)"
        )
    return _running().get(str(url))


def _access(url: str, place: Mapping[str, Any] | None, file: Path) -> ManagerAccess:
    """Contents of the key file and of the manager's own."""
    if not file.exists():
        raise ManagerError(
            "not-permitted",
            f"no key for the resource manager at {url}: there is no {file}",
            "ask its administrator for one (osd manager keys add), or be root on its host",
        )
    server = str(place["key"]) if place else _fields(file).get("server")
    if not server:
        raise ManagerError(
            "key",
            f"{file} does not say the public key of the manager at {url}, which does not run here",
            'its metadata must have server = "..." (osd manager keys add writes it)',
        )
    try:
        pair = read_key(file)
    except KeysError as error:
        raise ManagerError("key", str(error)) from None
    if pair.secret is None:
        raise ManagerError("key", f"{file}: holds no secret key")
    return ManagerAccess(url, server, pair)


def _only(here: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if len(here) == 1:
        return next(iter(here.values()))
    if not here:
        hint = (
            "'osd target serve' starts one; under systemd: systemctl start iosd-manager; one of another "
            "host: --manager URL, or IOSD_MANAGER"
        )
        others = os.geteuid() != 0 and any(places.SYSTEM.glob(f"{places.MANAGER}-*.json"))
        raise ManagerError(
            "unreachable",
            "no resource manager of this user runs here"
            if others
            else "no resource manager runs here",
            f"one that root started runs: run this as root; {hint}" if others else hint,
        )
    lines = [
        f"{url}  of {', '.join(each.get('targets') or ()) or 'no target'}"
        for url, each in here.items()
    ]
    raise ManagerError(
        "several",
        "more than one resource manager runs here; say which, --manager URL or IOSD_MANAGER:",
        "\n  ".join(lines),
    )


def _fields(file: Path) -> dict[str, str]:
    try:
        return read_file(file)
    except KeysError as error:
        raise ManagerError("key", str(error)) from None


def user_name() -> str:
    """Our user name on this host; of a user without a name, as in a container, "uid N"."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


class ManagerClient:
    """A connection; a context manager.

    Args: timeout_s: for each answer.

    Raises:
        ManagerError: it is no address.
    """

    def __init__(self, access: ManagerAccess, timeout_s: float = TIMEOUT_S) -> None:
        self.access = access
        self.timeout_s = timeout_s
        self.serials = itertools.count(1)
        assert access.key.secret is not None
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, ANSWER_MOST)
        self.socket.setsockopt(zmq.IPV6, 1)
        self.socket.setsockopt(zmq.CURVE_SERVERKEY, access.server.encode())
        self.socket.setsockopt(zmq.CURVE_PUBLICKEY, access.key.public.encode())
        self.socket.setsockopt(zmq.CURVE_SECRETKEY, access.key.secret.encode())
        self.monitor = self.socket.get_monitor_socket()
        self.known = False  # the handshake has been done
        self.hung_up = 0  # connections that were closed before it
        self.refused: ManagerError | None = None  # why there will be no connection
        try:
            self.socket.connect(access.url)
        except zmq.ZMQError as error:
            self.close()
            raise ManagerError("unreachable", f"{access.url}: {error}") from None

    @classmethod
    def find(
        cls,
        url: str | None = None,
        key_file: Path | None = None,
        timeout_s: float = TIMEOUT_S,
        target: str | None = None,
    ) -> ManagerClient:
        """Connect to the manager that is meant (find)."""
        return cls(find(url, key_file, timeout_s, target), timeout_s)

    def __enter__(self) -> ManagerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()
        self.context.term()

    def ask(
        self, method: str, *, why: str = "", user: str | None = None, **params: Any
    ) -> dict[str, Any]:
        """One request; params that are None are left out.  user: for whom, if not for ourselves.

        Raises:
            ManagerError: refused, or no answer came: a change may have been made or not.
        """
        serial = next(self.serials)
        request = {
            "schema": SCHEMA,
            "id": serial,
            "method": method,
            "params": {key: value for key, value in params.items() if value is not None},
            "user": user_name() if user is None else user,
            "why": why,
        }
        until = time.monotonic() + self.timeout_s
        self._send(json.dumps(request).encode(), until)
        while True:
            answer = self._receive(until)
            if answer.get("id") == serial:
                break
        if "error" in answer:
            error = answer["error"]
            raise ManagerError(
                str(error.get("code")), str(error.get("message")), str(error.get("remedy", ""))
            )
        result = answer.get("result")
        return result if isinstance(result, dict) else {"result": result}

    def _send(self, request: bytes, until: float) -> None:
        """Raises: ManagerError: as _wait().  ZeroMQ would wait for ever once the key has been refused."""
        while True:
            with suppress(zmq.Again):
                self.socket.send_multipart([b"", request], zmq.NOBLOCK)
                return
            self._wait(zmq.POLLOUT, until)

    def _receive(self, until: float) -> dict[str, Any]:
        """The next answer.  Raises: ManagerError: none comes, or no key of ours is known there."""
        self._wait(zmq.POLLIN, until)
        try:
            answer = json.loads(self.socket.recv_multipart()[-1])
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("schema") != SCHEMA:
            raise ManagerError(
                "version", f"the manager at {self.access.url} does not speak {SCHEMA}"
            )
        return answer

    def _wait(self, event: int, until: float) -> None:
        """Wait until the socket can receive or send.

        Raises: ManagerError: it can't, or no key of ours is known there.
        """
        poller = zmq.Poller()
        poller.register(self.socket, event)
        poller.register(self.monitor, zmq.POLLIN)
        while not self.refused and (left := until - time.monotonic()) > 0:
            ready = dict(poller.poll(int(left * 1000) + 1))
            if self.monitor in ready:
                # zmq.utils.monitor would read it too, and import asyncio for that.
                self._heed(EVENT.unpack_from(self.monitor.recv_multipart()[0])[0])
            if self.socket in ready:
                return
        raise self.refused or ManagerError(
            "unreachable",
            f"the manager at {self.access.url} has not answered within {self.timeout_s:g} s",
            "if this was a change: 'osd manager changes' says whether it was made",
        )

    def _heed(self, event: int) -> None:
        """Outcome of the handshake."""
        if event == zmq.Event.HANDSHAKE_SUCCEEDED:
            self.known = True
        elif event == zmq.Event.HANDSHAKE_FAILED_AUTH:
            self.refused = ManagerError(
                "not-permitted",
                f"the manager at {self.access.url} does not know this key",
                "ask its administrator for one: osd manager keys add",
            )
            raise self.refused
        elif event == zmq.Event.DISCONNECTED and not self.known:
            self.hung_up += 1
            if (
                self.hung_up < HANG_UPS
            ):  # one that ends, too, closes a connection that it has just taken
                return
            raise ManagerError(
                "not-permitted",
                f"who listens at {self.access.url} is not the manager whose public key we have",
                "it may have got new keys: ask its administrator for its 'server' key",
            )


def _probe(url: str, timeout_s: float) -> None:
    """See that somebody listens: ZeroMQ itself would go on trying, and never say why it cannot."""
    scheme, _, rest = url.partition("://")
    try:
        if scheme == "ipc":
            with socket.socket(socket.AF_UNIX) as plain:
                plain.settimeout(timeout_s)
                plain.connect(rest)
        elif scheme == "tcp":
            host, _, port = rest.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
        else:
            raise ManagerError(
                "bad-request", f"'{url}' is no manager: write ipc://PATH or tcp://ADDRESS:PORT"
            )
    except PermissionError:
        raise ManagerError(
            "not-permitted",
            f"{url}: this user may not connect there",
            "run this as root or as the user who serves the target; another user needs a tcp:// address "
            "([manager] listen) and a key ('osd manager keys add')",
        ) from None
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ManagerError("unreachable", f"no resource manager at {url}: {why}") from None
