# SPDX-License-Identifier: GPL-2.0-or-later
"""The dialogue between a request and a transport where credentials are in use.  Requests get a capability
and check values; an answer counts only with its check values.  No I/O.

Lives here: Signer.exchange(), a dialogue that a caller carries (commands/caller.py for threads,
commands/async_unit.py for coroutines).
It yields the command to send, or something to do meanwhile, and is sent the result.
Not here: bytes of protected commands (sealed.py), sources of credentials (credentials.py).
Source: docs/security-protocol.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from pyosd import requests
from pyosd.errors import IntegrityError, NotFound, OSDError, PermissionDenied, UnprovenAnswer
from pyosd.forks import after_fork
from pyosd.security.credentials import Credential, CredentialSource
from pyosd.security.permissions import attaches, is_of_job, needs_of, other_type
from pyosd.security.sealed import Grant, Sealed, open_reply, seal
from pyosd.types import ROOT, AttributeId, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID, Information, Page
from pyosd.wire.capability import Need, Permission, SecurityMethod, milliseconds
from pyosd.wire.cdb import (
    LIST_HEADER_LENGTH,
    NO_ATTRIBUTES,
    AttributeLists,
    Request,
    ServiceAction,
    only_reads,
)
from pyosd.wire.reply import Reply
from pyosd.wire.transport import Command, Response

GRANTS_KEPT = 1024
JOBS_KEPT = 4096
MEMBERS_MOST = 10_000
"""Members of an array of jobs."""
RESYNC_WITHIN_S = 5.0
"""If a refusal for the nonce's time comes later, the command may have been executed, because the
nonce may have expired during the transfer."""
TOKEN_PAGE = 0xB1
_TOKEN_ROOM = 255
_FUN_EXE = int(Permission.FUN_EXE)
_CLOCK = AttributeId(Page.ROOT_INFORMATION, Information.CLOCK)
_DATA_COMMANDS = {
    ServiceAction.READ,
    ServiceAction.WRITE,
    ServiceAction.APPEND,
    ServiceAction.CLEAR,
    ServiceAction.PUNCH,
}  # without attributes they need a permission for one object alone
_CAPABILITY, _KEY_VERSION, _EXPIRES, _TYPE, _TAG = 80, 81, 84, 128, 140
_NOT_THIS = (_TYPE, 152, 160)  # its capability is for another object
_FIELD, _FROZEN, _REPEATED, _TIME = (0x24, 0x00), (0x24, 0x05), (0x24, 0x06), (0x24, 0x07)
_UNPROVEN = (
    "refused without proof: the target knows no such key (was it changed?), or somebody on the way "
    "says so"
)
_ACTED = (
    "the command's nonce is in use although it was said to be refused: whether it acted is unknown"
)


def _distance(job: ObjectRef, obj: ObjectRef) -> int:
    """How many ids an object comes behind a job's surrogate; -1: elsewhere."""
    return obj.object_id - job.object_id if job.partition_id == obj.partition_id else -1


@dataclass(frozen=True)
class Aside:
    """A command to send, and to wait for, before the one that the dialogue is about."""

    command: Command


Step: TypeAlias = Command | Aside | Callable[[], object]
"""The command itself; another one first; or something to call, which may take its time."""
Exchange: TypeAlias = Generator[Step, Any, Reply]


class Signer:
    """Signs requests to one target and verifies what it answers.  Thread-safe."""

    def __init__(self, source: CredentialSource | None = None) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._grants: dict[Need, Grant] = {}
        self._ready: dict[int, Grant] = {}  # by the id of the credential: one may serve many needs
        self._of_data: dict[
            tuple[int, int, int], Grant
        ] = {}  # of these, by data command and object
        self._types: dict[ObjectRef, ObjectType] = {}
        self._jobs: OrderedDict[ObjectRef, Need] = OrderedDict()
        self._token = b""
        self._ahead_ms = 0  # the target's clock less ours
        after_fork(self, Signer._renew)

    def _renew(self) -> None:
        """Have a lock that no thread of the parent holds (pyosd.forks)."""
        self._lock = threading.Lock()

    def exchange(self, request: Request, credential: Credential | None = None) -> Exchange:
        """The dialogue of one request.

        Args: credential: to use instead of what the source has for it.
        Returns: the answer, verified as far as the credential's method goes.
        Raises: ValueError; PermissionDenied, Unreachable: of the source; IntegrityError.
        """
        return _Attempts(self, request, credential).run()

    def seal_at_once(self, request: Request) -> Sealed | None:
        """The command of a request for which nothing has to be asked first, nor learned from its answer;
        None: it takes a dialogue.

        Raises: ValueError.
        """
        grant = self._grant_at_once(request)
        if grant is None:
            return None
        if grant.method is SecurityMethod.CAPKEY:
            return seal(request, [grant], b"", self._token) if self._token else None
        nonce = self.nonce() if grant.method > SecurityMethod.CAPKEY else b""
        return seal(request, [grant], nonce, b"")

    def open(self, request: Request, sealed: Sealed, response: Response) -> Reply:
        """The answer to a command of seal_at_once(), verified."""
        return open_reply(request, sealed, response)

    def go_on(self, request: Request, sealed: Sealed, sent: float, refused: Reply) -> Exchange:
        """The dialogue after what seal_at_once() gave was refused; sent: at that time.monotonic()."""
        return _Attempts(self, request, None).go_on(sealed, sent, refused)

    def _grant_at_once(self, request: Request) -> Grant | None:
        plain = (
            request.attributes is NO_ATTRIBUTES
            and request.service_action in _DATA_COMMANDS
            and not (request.permissions or request.grants)
        )
        key = (int(request.service_action), request.partition_id, request.object_id)
        if plain and (grant := self._of_data.get(key)) and time.time() < grant.until:
            return grant
        need, *others = needs_of(request)
        need = self.learned(request, need)
        if others or int(need.permissions) & _FUN_EXE:
            return None
        found = self.kept(need)
        if plain and found:
            with self._lock:
                if len(self._of_data) >= GRANTS_KEPT:
                    self._of_data.clear()
                self._of_data[key] = found
        return found

    # ---- what is shared by all requests -----------------------------------------------------------

    def kept(self, need: Need) -> Grant | None:
        """The earlier credential for the same need, unless it is about to expire."""
        grant = self._grants.get(need)
        return grant if grant and time.time() < grant.until else None

    def keep(self, need: Need, grant: Grant) -> None:
        """Remember what was handed out."""
        with self._lock:
            self._grants.pop(need, None)
            self._grants[need] = grant
            if len(self._grants) > GRANTS_KEPT:
                del self._grants[next(iter(self._grants))]

    def drop(self, credential: Credential) -> None:
        """Forget what the target did not take, and tell who handed it out."""
        with self._lock:
            self._of_data.clear()
            self._ready.clear()
            for need in [n for n, each in self._grants.items() if each.credential == credential]:
                del self._grants[need]
        if self.source:
            self.source.refused(credential)

    def fetch(self, need: Need) -> Grant:
        """Ask the source.  May take its time."""
        if self.source is None:
            raise PermissionDenied(0, 0, 0, f"no credentials for {need.obj}", sam_status=0)
        credential = self.source.credential(*need)
        grant = self._ready.get(id(credential))
        if grant is None:  # a grant keeps its credential, so that no other one gets its id
            grant = Grant(credential)
            with self._lock:
                if len(self._ready) >= GRANTS_KEPT:
                    self._ready.clear()
                self._ready[id(credential)] = grant
        self.keep(need, grant)
        return grant

    def fetch_first(self, needs: Sequence[Need]) -> tuple[Need, Grant]:
        """Ask the source for one after the other, until it gives one.  May take its time.

        Raises: PermissionDenied: that of the first.
        """
        try:
            return needs[0], self.kept(needs[0]) or self.fetch(needs[0])
        except PermissionDenied:
            for need in needs[1:]:
                with suppress(PermissionDenied):
                    return need, self.kept(need) or self.fetch(need)
            raise

    def learn_job(self, job: ObjectRef, need: Need) -> None:
        """Remember the credential of a submission: it is for the job's surrogate, too."""
        with self._lock:
            self._of_data.clear()
            self._jobs[job] = need
            if len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)

    def forget_job(self, job: ObjectRef) -> None:
        """Forget the credential of a submission: it is not for this object."""
        with self._lock:
            self._of_data.clear()
            self._jobs.pop(job, None)

    def stand_ins(self, request: Request, need: Need) -> list[Need]:
        """Other needs that can permit a request if there is no credential for the first. The
        submitter of a job can read its surrogate, and the surrogate of an array whose member ids
        follow its own. A need for all objects may be more than this request takes.
        """
        if need.object_type is not ObjectType.USER_OBJECT:
            return []
        if not need.obj.object_id:
            own = ref(request.partition_id, request.object_id)
            return [need._replace(obj=own)] if request.object_id else []
        with self._lock:
            before = [each for each in self._jobs if 0 <= _distance(each, need.obj) <= MEMBERS_MOST]
            found = [self._jobs[max(before)]] if before else []
        if is_of_job(request):
            whole = ref(need.obj.partition_id)
            found.append(Need(whole, ObjectType.PARTITION, Permission.FUN_EXE))
        return found

    def learned(self, request: Request, need: Need) -> Need:
        """A need, completed with knowledge about its object: the credential that started the job,
        and the type of the object if the request does not determine it.
        """
        if self._jobs and (started := self._jobs.get(need.obj)):  # others may forget it meanwhile
            return started
        kind = self._types.get(need.obj) if self._types else None
        if kind is not None and other_type(request, need):
            return need._replace(object_type=kind)
        return need

    def learn_type(self, need: Need) -> None:
        """Remember what an object turned out to be."""
        with self._lock:
            if len(self._types) >= GRANTS_KEPT:
                self._types.clear()
            self._types[need.obj] = need.object_type

    def token(self, anew: bool = False) -> Generator[Step, Any, bytes]:
        """The target's security token."""
        if anew or not self._token:
            cdb = bytes((0x12, 1, TOKEN_PAGE, 0, _TOKEN_ROOM, 0))
            response = yield Aside(Command(cdb, b"", _TOKEN_ROOM, repeatable=True))
            page = bytes(response.data_in)
            self._token = page[4 : 4 + int.from_bytes(page[2:4], "big")]
            if response.status or not self._token:
                raise IntegrityError(0, 0, 0, "the target has no security token", sam_status=0)
        return self._token

    def nonce(self) -> bytes:
        """A new one, by the target's clock."""
        now = milliseconds(time.time()) + self._ahead_ms
        return now.to_bytes(6, "big") + os.urandom(6)

    def set_clock(self, target_ms: int) -> None:
        """Use the target's clock from now on."""
        self._ahead_ms = target_ms - milliseconds(time.time())


class _Attempts:
    """One request, as often as it has to be sent: what was tried already."""

    def __init__(self, signer: Signer, request: Request, credential: Credential | None) -> None:
        self._signer = signer
        self._request = request
        self._own = credential
        self._needs = [*needs_of(request)]
        self._first = self._needs[0]
        self._needs[0] = signer.learned(request, self._first)
        self._nonce = b""
        self._sent = 0.0
        self._kept_nonce = False
        self._tried: set[str] = set()

    def go_on(self, sealed: Sealed, sent: float, refused: Reply) -> Exchange:
        """After the first command, without a dialogue, was refused."""
        self._nonce, self._sent = sealed.nonce, sent
        assert refused.error
        if (yield from self._mended(refused.error, [sealed.grant])):
            return (yield from self.run())
        return (yield from self._judged(refused))

    def run(self) -> Exchange:
        while True:
            grants = yield from self._grants()
            method = grants[0].method
            token = b""
            if method is SecurityMethod.CAPKEY:
                token = yield from self._signer.token()
            elif method > SecurityMethod.CAPKEY and not self._nonce:
                self._nonce = self._signer.nonce()
            sealed = seal(self._request, grants, self._nonce, token)
            self._sent = time.monotonic()
            response: Response = yield sealed.command
            reply = open_reply(self._request, sealed, response)
            again = reply.error and (yield from self._mended(reply.error, grants))
            if not again:
                self._learn(reply)
                return (yield from self._judged(reply))

    def _judged(self, reply: Reply) -> Generator[Step, Any, Reply]:
        """The answer, with NotFound if a key is unknown because its partition does not exist. The
        target does not disclose this to everybody, and only some sources know that they have every
        key.
        """
        error, source = reply.error, self._signer.source
        if error is None or error.field_pointer != _CAPABILITY or (error.asc, error.ascq) != _FIELD:
            return reply
        if self._own or not getattr(source, "has_all_keys", False):
            return reply
        where = self._first.obj.partition_id
        if where and (yield from self._is_absent(where)):
            text = f"{ref(where)} does not exist"
            gone = NotFound(error.sense_key, error.asc, error.ascq, text, sense=error.sense)
            return replace(reply, error=gone)
        return reply

    def _is_absent(self, partition_id: int) -> Generator[Step, Any, bool]:
        """Whether the list of partitions lacks it; False also where nobody can say."""
        request = requests.list_objects(0, LIST_HEADER_LENGTH + 8, partition_id)
        need = needs_of(request)[0]
        grant = self._signer.kept(need) or (yield partial(self._signer.fetch, need))
        token = b""
        if grant.method is SecurityMethod.CAPKEY:
            token = yield from self._signer.token()
        sealed = seal(request, [grant], self._signer.nonce(), token)
        response = yield Aside(sealed.command)
        reply = open_reply(request, sealed, response)
        from pyosd.wire.list_data import decode_list

        return reply.error is None and partition_id not in decode_list(reply.data).ids

    def _learn(self, reply: Reply) -> None:
        """Remember the credential of each job that the request has submitted or read."""
        need, request = self._needs[0], self._request
        if request.service_action in (ServiceAction.EXEC, ServiceAction.EXECUTE_FUNCTION):
            where = reply.retrieved.find(CURRENT_PARTITION_ID)
            job = reply.retrieved.find(CURRENT_OBJECT_ID)
            # In another partition than its zone it needs another key: this credential is not for it.
            if where and job and job.uint and where.uint == need.obj.partition_id:
                self._signer.learn_job(ref(where.uint, job.uint), need)
        elif request.service_action is ServiceAction.ACTIVATE_FUNCTION or attaches(request):
            return  # its object is no job's
        elif int(need.permissions) & _FUN_EXE and reply.error is None:
            self._signer.learn_job(ref(request.partition_id, request.object_id), need)

    def _grants(self) -> Generator[Step, Any, list[Grant]]:
        found = []
        for at, need in enumerate(self._needs):
            if at == 0 and self._own:
                grant = Grant(self._own)
            else:
                kept = self._signer.kept(need)
                grant = kept or (yield from self._fetched(at))
            found.append(grant)
        return found

    def _fetched(self, at: int) -> Generator[Step, Any, Grant]:
        needs = [self._needs[at]]
        if at == 0:
            other = other_type(self._request, needs[0])
            needs += [other] if other else []
            needs += self._signer.stand_ins(self._request, needs[0])
        given = yield partial(self._signer.fetch_first, needs)
        grant: Grant
        self._needs[at], grant = given
        return grant

    def _once(self, what: str) -> bool:
        """Whether that was not tried before."""
        if what in self._tried:
            return False
        self._tried.add(what)
        return True

    def _mended(self, error: OSDError, grants: list[Grant]) -> Generator[Step, Any, bool]:
        """Remove the cause of a refusal.  Returns: whether to send the request once more."""
        code = (error.asc, error.ascq)
        pointer = error.field_pointer if code == _FIELD else None
        if pointer == _CAPABILITY:
            return (yield from self._unproven(error, grants))
        if code == _REPEATED:
            return self._repeated()
        if self._kept_nonce and code == _TIME and not only_reads(self._request):
            raise UnprovenAnswer(error.sense_key, error.asc, error.ascq, _ACTED, sense=error.sense)
        self._nonce, self._kept_nonce = b"", False
        if code == _FROZEN or pointer in (_KEY_VERSION, _EXPIRES, _TAG):
            return (yield from self._renewed(grants))
        if code == _TIME:
            return (yield from self._resynced(error))
        if pointer in _NOT_THIS and self._is_stand_in() and self._once("its own"):
            self._signer.forget_job(self._first.obj)
            self._needs[0] = self._first
            return True
        other = other_type(self._request, self._needs[0]) if pointer == _TYPE else None
        if other and not self._own and self._once("type"):
            self._needs[0] = other
            self._signer.learn_type(other)
            return True
        return False

    def _is_stand_in(self) -> bool:
        """Whether the credential sent is for another object than the addressed one."""
        return self._needs[0].obj != self._first.obj

    def _unproven(self, error: OSDError, grants: list[Grant]) -> Generator[Step, Any, bool]:
        """24/00 at 80: no key, so no proof.  The nonce stays the same, so that a command that was
        executed is not executed a second time.
        """
        if isinstance(error, PermissionDenied):
            error.verified = False
        if grants[0].method is SecurityMethod.CAPKEY:
            before = yield from self._signer.token()
            # Once more after other credentials: a target may restart while its keys change.
            when = "token, again" if "credential" in self._tried else "token"
            if self._once(when) and before != (yield from self._signer.token(anew=True)):
                return True
        self._kept_nonce = bool(self._nonce)
        if (yield from self._renewed(grants)):
            return True
        error.text = f"{_UNPROVEN} ({error.text})"
        error.args = (error.text,)
        return False

    def _renewed(self, grants: list[Grant]) -> Generator[Step, Any, bool]:
        """Other credentials.  False: the source has none, or the same again."""
        if self._own or not self._once("credential"):
            return False

        def renew() -> bool:
            for grant in grants:
                self._signer.drop(grant.credential)
            try:
                found = [self._signer.fetch(need) for need in self._needs]
            except PermissionDenied:
                return False
            return [each.credential for each in found] != [each.credential for each in grants]

        again: bool = yield renew
        if again:  # which may have taken a while: the target may be another process by now
            self._tried.discard("token")
        return again

    def _repeated(self) -> bool:
        """The nonce was seen before: by a command that was sent twice when a session was lost, or
        after a refusal that was not the target's.
        """
        if only_reads(self._request) and self._once("nonce"):
            self._nonce, self._kept_nonce = b"", False
            return True
        raise UnprovenAnswer(0x5, *_REPEATED, _ACTED)

    def _resynced(self, error: OSDError) -> Generator[Step, Any, bool]:
        """Take the time of the target from the refusal, else from the root."""
        late = time.monotonic() - self._sent > RESYNC_WITHIN_S and not only_reads(self._request)
        if late or not self._once("clock"):
            return False
        clock = error.sense.information if error.sense else None
        if clock is None:
            clock = yield from self._read_clock()
        if not clock:
            return False
        self._signer.set_clock(clock)
        return True

    def _read_clock(self) -> Generator[Step, Any, int]:
        """The root's clock attribute if it can be read without a nonce, else 0."""
        request = requests.get_attributes(ROOT, attributes=AttributeLists((_CLOCK,)))
        need = needs_of(request)[0]
        try:
            grant = self._signer.kept(need) or (yield partial(self._signer.fetch, need))
        except PermissionDenied:
            return 0
        if grant.method > SecurityMethod.CAPKEY:
            return 0
        token = b""
        if grant.method is SecurityMethod.CAPKEY:
            token = yield from self._signer.token()
        sealed = seal(request, [grant], b"", token)
        response = yield Aside(sealed.command)
        reply = open_reply(request, sealed, response)
        return reply.attributes[0].uint if reply.error is None and reply.attributes else 0
