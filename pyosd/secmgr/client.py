# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to a security manager, and the source of credentials that the initiator uses."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyosd import errors
from pyosd.forks import after_fork
from pyosd.secmgr.capabilities import from_json, signing_partition
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import read_private
from pyosd.secmgr.names import TYPES, names_of
from pyosd.security.credentials import Credential
from pyosd.types import ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.capability import Permission, SecurityMethod, milliseconds

DEFAULT_PORT = 8471
TIMEOUT_S = 30.0
ANSWER_MOST = 16 << 20
KEPT_MOST = 4096
MARGIN_S = 30.0
"""A credential is renewed so long before it expires, or in the last fifth of its life."""
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}


OUT_OF_TIME = ("certificate is not yet valid", "certificate has expired")


class SecmgrUnreachable(errors.Unreachable):
    """The security manager does not answer.  The target may be well.  hint: what to check."""

    hint = (
        "is the security manager running ('osd secmgr serve'), and is this its URL "
        "(--secmgr, IOSD_SECMGR, or a profile's 'secmgr')?"
    )

    def __init__(self, text: str, *, untrusted: bool = False, ended: str = "") -> None:
        """ended: the client's own file of the authority, if its certificates have ended."""
        super().__init__(text)
        if ended:
            self.hint = (
                f"by the clock of this host the certificate in {ended} has ended: get the present ca.pem "
                "from the security manager's administrator, and put it in its place"
            )
        elif untrusted and any(words in text for words in OUT_OF_TIME):
            self.hint = (
                "compare the clocks of this host and of the security manager's; if both are right, its "
                "administrator replaces the certificate, or starts it again, which renews its own"
            )
        elif untrusted:
            self.hint = (
                "name the file ca.pem that 'osd secmgr init' made (IOSD_SECMGR_CA, or secmgr-ca of the "
                "profile), and the host by a name of its certificate"
            )


class AccessRefused(errors.PermissionDenied):
    """The security manager gives the user no credential.  hint: what to do about it."""

    def __init__(self, text: str, *, known: bool = True) -> None:
        """known: the security manager knows the user."""
        super().__init__(0, 0, 0, text, sam_status=0)
        if not known:
            self.hint = (
                "an administrator of the security manager makes another token: "
                "osd acl token add USER --save FILE"
            )
        elif " lacks " in text:
            self.hint = "an administrator of the security manager permits more: 'osd acl add'"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.text,), self.__dict__)


class SecmgrRefused(errors.OSDError):
    """The security manager refused, for another reason than permission.  code: its word for it."""

    code = ""


def refusal(code: str, text: str) -> errors.OSDError:
    """The exception for an answer of the security manager."""
    if code in ("not-permitted", "unauthenticated"):
        return AccessRefused(text, known=code == "not-permitted")
    if code == "absent":
        return errors.NotFound(0, 0, 0, text, sam_status=0)
    if code in ("target-unreachable", "not-ready"):
        return errors.Unreachable(text)
    found = SecmgrRefused(0, 0, 0, text, sam_status=0)
    found.code = code
    return found


class Client:
    """One connection to a security manager, made when needed.  Any thread; one request at a time.

    Args: url: https://HOST[:PORT].  token, or token_file (0600) with it.  certificate, key: files of
        a client certificate instead.  ca: file of who signed the server's; None: those the system trusts.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        token_file: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        ca: Path | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f"'{url}' is not https://HOST[:PORT]")
        self.url = url
        self._host, self._port = parts.hostname, parts.port or DEFAULT_PORT
        self._timeout = timeout
        self._token = token or (read_private(token_file).strip() if token_file else "")
        if token_file and not self._token:
            raise SecmgrError(f"{token_file} is empty: a token belongs there")
        if not self._token and certificate is None:
            raise ValueError(
                "a security manager requires a token or a certificate: set IOSD_SECMGR_TOKEN_FILE, or "
                "secmgr-token-file of the profile"
            )
        try:
            self._context = ssl.create_default_context(cafile=ca)
        except OSError as error:
            why = error.strerror or error
            raise SecmgrError(f"cannot use {ca} as an authority's certificate: {why}") from None
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        if certificate is not None:
            try:
                self._context.load_cert_chain(certificate, key, password=b"")
            except (OSError, ssl.SSLError) as error:
                raise SecmgrError(f"cannot use {certificate}: {error}") from None
        self._ca = ca
        self._connection: http.client.HTTPSConnection | None = None  # under _lock
        self._lock = threading.Lock()
        after_fork(self, Client.forget)

    def __repr__(self) -> str:
        return f"<pyosd.secmgr.Client {self.url}>"

    def call(self, name: str, /, **params: Any) -> dict[str, Any]:
        """Ask for something; parameters that are None are left out.

        Raises: PermissionDenied, NotFound, SecmgrRefused: it refused; Unreachable: it is not there.
        """
        fields = {key: value for key, value in params.items() if value is not None}
        with self._lock:
            status, body = self._exchange(f"/v1/{name}", json.dumps(fields).encode())
        try:
            answer = json.loads(body)
            error = answer.get("error") or {}
            code, text = str(error.get("code", "")), str(error.get("message", f"HTTP {status}"))
        except (ValueError, AttributeError, RecursionError):
            raise self.impostor() from None
        if status != 200:
            raise refusal(code, text)
        assert isinstance(answer, dict)
        return answer

    def impostor(self) -> SecmgrUnreachable:
        """The exception for an answer that no security manager gives."""
        return SecmgrUnreachable(f"{self.url} does not answer as a security manager does")

    def close(self) -> None:
        """Disconnect."""
        with self._lock:
            self._drop()

    def __del__(self) -> None:
        # Sources live as long as sessions that nobody tells them the end of.
        if getattr(self, "_connection", None) is not None:
            self._drop()

    def forget(self) -> None:
        """Leave the connection to the parent, in a process that fork() has made; nothing is sent.

        Another thread, which may have held the lock, is not in this process.
        """
        self._lock = threading.Lock()
        self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        while True:
            fresh = self._connection is None
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPSConnection(
                        self._host, self._port, timeout=self._timeout, context=self._context
                    )
                self._connection.request("POST", path, body, headers)
                response = self._connection.getresponse()
                return response.status, response.read(ANSWER_MOST)
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                # One that was kept may have been closed by the other side meanwhile.
                if fresh or isinstance(error, TimeoutError):
                    why = f"cannot reach the security manager {self.url}: {error}"
                    untrusted = isinstance(error, ssl.SSLCertVerificationError)
                    ended = f"{self._ca}" if untrusted and self._has_ended_authority() else ""
                    raise SecmgrUnreachable(why, untrusted=untrusted, ended=ended) from None

    def _has_ended_authority(self) -> bool:
        """Whether no certificate of the given file is valid any more."""
        found = self._context.get_ca_certs() if self._ca is not None else []
        ends = [ssl.cert_time_to_seconds(str(each["notAfter"])) for each in found]
        return bool(ends) and max(ends) <= time.time()


class SecurityManagerSource:
    """A CredentialSource: asks the security manager, keeps what it gets, renews it ahead of its end.

    Any thread; several that need the same credential ask once.

    Args: target: iSCSI name.  method: the least wanted.  Others: as Client's.
    """

    def __init__(
        self,
        url: str,
        target: str,
        *,
        method: SecurityMethod = SecurityMethod.CAPKEY,
        **client: Any,
    ) -> None:
        self.client = Client(url, **client)
        self.target = target
        self._method = method
        self._lock = threading.Lock()
        self._kept: OrderedDict[TypedObject, list[tuple[Credential, int]]] = (
            OrderedDict()
        )  # under _lock
        self._refused: set[int] = set()  # under _lock; partitions
        self._refusals = 0  # under _lock
        self._asking: dict[TypedObject, threading.Lock] = {}  # under _lock
        after_fork(self, SecurityManagerSource.forget)

    def forget(self) -> None:
        """As of Client: threads that held locks are not in this process."""
        self._lock = threading.Lock()
        self._asking = {}

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """One that permits this at least."""
        place = (obj, object_type)
        found = self._find(place, permissions, fresh=True)
        if found is not None:
            return found
        with self._lock:
            asking = self._asking.setdefault(place, threading.Lock())
        with asking:
            found = self._find(place, permissions, fresh=True)
            if found is None:
                found = self._fetch(place, permissions)
        with self._lock:
            if not asking.locked():
                self._asking.pop(place, None)
        return found

    def _fetch(self, place: TypedObject, permissions: Permission) -> Credential:
        obj, object_type = place
        partition = signing_partition(obj, object_type, permissions)
        while True:
            with self._lock:
                refusals, told = self._refusals, partition in self._refused
            try:
                answer = self.client.call(
                    "credentials",
                    target=self.target,
                    object=str(obj),
                    type=TYPE_NAMES[object_type],
                    permissions=names_of(permissions),
                    method=self._method.name,
                    refused=told or None,
                )
            except errors.Unreachable:
                old = self._find(place, permissions, fresh=False)
                if old is None:
                    raise
                return old
            try:
                credential = from_json(answer)
            except ValueError:
                raise self.client.impostor() from None
            with self._lock:
                # Another one was refused meanwhile: this may be as old as that.
                if refusals == self._refusals:
                    break
        with self._lock:
            if told:
                self._refused.discard(partition)
            kept = self._kept.setdefault(place, [])
            kept[:] = [each for each in kept if each[0].lasts()]
            kept.insert(0, (credential, milliseconds(time.time())))
            self._kept.move_to_end(place)
            if len(self._kept) > KEPT_MOST:
                self._kept.popitem(last=False)
        return credential

    def _find(
        self, place: TypedObject, permissions: Permission, *, fresh: bool
    ) -> Credential | None:
        """One that is kept: for the object, or for all of its partition.

        fresh: not one that should be renewed.
        """
        obj, object_type = place
        partition = signing_partition(obj, object_type, permissions)
        with self._lock:
            for where in (place, (ref(obj.partition_id), object_type)):
                for credential, since_ms in self._kept.get(where, ()):
                    has = credential.capability.permissions
                    if (
                        permissions in has
                        and signing_partition(obj, object_type, has) == partition
                        and lasts(credential, since_ms, fresh)
                    ):
                        return credential
        return None

    def partitions(self) -> list[PartitionId]:
        """The partitions of the target in which this user may list jobs.  Raises: as credential()."""
        answer = self.client.call("partitions", target=self.target)
        try:
            return [PartitionId(int(each, 0)) for each in answer["partitions"]]
        except (KeyError, TypeError, ValueError):
            raise self.client.impostor() from None

    def refused(self, credential: Credential) -> None:
        """Do not hand it out again, and have the security manager look at its keys."""
        capability = credential.capability
        with self._lock:
            self._refusals += 1
            for place, kept in list(self._kept.items()):
                left = [each for each in kept if each[0].capability != capability]
                if len(left) != len(kept):
                    self._kept[place] = left
                    partition = signing_partition(*place, capability.permissions)
                    self._refused.add(partition)

    def close(self) -> None:
        """Disconnect; what was handed out stays good."""
        self.client.close()


TypedObject = tuple[ObjectRef, ObjectType]


def lasts(credential: Credential, since_ms: int, fresh: bool) -> bool:
    """Whether it is good for a command, or, fresh, for long enough not to be renewed."""
    expires_ms = credential.capability.expires_ms
    if not expires_ms:
        return True
    margin = min(MARGIN_S, (expires_ms - since_ms) / 5000) if fresh else 1.0
    return credential.lasts(margin)
