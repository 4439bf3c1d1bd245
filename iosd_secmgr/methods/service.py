# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager's state, and the methods that every user may call.

A method takes the caller and parameters, and returns a JSON object.  Not here: HTTP (http/web.py), the
methods of administrators (admin.py), which process.py adds to the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.access.rules import (
    DEFAULT_LIFETIME_S,
    AccessRequest,
    AllowedAccess,
    decide,
    missing,
)
from iosd_secmgr.keys.manager import KeyManager
from iosd_secmgr.keys.pki import Authority
from iosd_secmgr.methods.params import Params, wrong
from iosd_secmgr.methods.table import Json, MethodRow, Requester
from iosd_secmgr.records import store
from iosd_secmgr.records.audit import Audit, AuditRecord
from iosd_secmgr.records.database import Database, Row, Transaction
from pyosd.secmgr import capabilities
from pyosd.secmgr.names import names_of
from pyosd.security.credentials import Credential
from pyosd.types import JOBS_COLLECTION, U64_MAX, ObjectType, ref
from pyosd.wire.capability import Permission, SecurityMethod, milliseconds

BATCH_MOST = 64
LIST_JOBS = Permission.GET_ATTR | Permission.M_OBJECT
"""On the collection of a partition's jobs; it shows the jobs of the caller."""
ENTRIES_MOST = 1000
SEARCHED = 10_000  # records of the log at a time: others use the database in between
LIFETIME_MOST_S = 86400
GIVEN, REFUSED = "credential", "credential.refused"
"""Their name in the audit log."""


@dataclass(frozen=True)
class Wanted:
    """A credential that somebody asks for.  range: start and length, both 0: not narrowed."""

    request: AccessRequest
    lifetime_s: int
    range: tuple[int, int]
    refused: bool


class Service:
    """All state of a security manager.  Any thread."""

    def __init__(
        self,
        database: Database,
        audit: Audit,
        keys: KeyManager,
        authority: Authority | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.database = database
        self.audit = audit
        self.keys = keys
        self.authority = authority
        self.clock = clock
        self.started_ms = self.now_ms()
        self.methods: dict[str, MethodRow] = {
            "whoami": MethodRow(self._whoami, admin=False),
            "credentials": MethodRow(self._credentials, admin=False),
            "credentials.issued": MethodRow(self._issued, admin=False),
            "acl.check": MethodRow(self._check, admin=False),
            "partitions": MethodRow(self._partitions, admin=False),
            "status": MethodRow(self._status, admin=False),
        }

    def now_ms(self) -> int:
        """The time, as records have it."""
        return int(self.clock() * 1000)

    def call(self, caller: Requester, name: str, fields: Any) -> Json:
        """Do what is asked.  Raises: Refusal."""
        method = self.methods.get(name)
        if method is None:
            raise Refusal("absent", f"there is no method '{name[:80]}'")
        if method.admin and not caller.admin:
            self.audit.add(caller.user, "refused", method=name)
            raise Refusal("not-permitted", f"{name} is for members of group '{store.ADMIN}'")
        params = Params(fields)
        return method.run(caller, params)

    # ---- the requester ----

    def caller(self, user: str) -> Requester:
        """A user with groups."""
        with self.database.transaction() as tx:
            return Requester(user, store.groups_of(tx, user))

    def by_token(self, token: str) -> Requester | None:
        """Owner of this token.  Raises: Refusal: a user who is disabled."""
        with self.database.transaction() as tx:
            user = store.user_of_token(tx, token, self.now_ms())
            return Requester(user, store.groups_of(tx, user)) if user else None

    def by_certificate(self, user: str, serial: str) -> Requester | None:
        """Owner of this certificate, which TLS has verified.

        Of our own authority it must not have been taken back; another's names who it is for.

        Raises: Refusal: a user who is disabled.
        """
        with self.database.transaction() as tx:
            known = self.authority is None or store.has_certificate(tx, serial, user)
            if not known or not store.is_user(tx, user):
                return None
            return Requester(store.enabled(tx, user), store.groups_of(tx, user))

    def _whoami(self, caller: Requester, params: Params) -> Json:
        params.done()
        return {"user": caller.user, "groups": sorted(caller.groups), "admin": caller.admin}

    def _status(self, caller: Requester, params: Params) -> Json:
        params.done()
        trouble = self.keys.trouble()
        with self.database.transaction() as tx:
            targets = [
                {
                    "name": each.name,
                    "url": each.url,
                    "method": each.method.name,
                    "rotate_s": each.rotate_s,
                    "trouble": trouble.get(each.name),
                }
                for each in store.targets(tx)
            ]
            count = {
                name: tx.run(f"SELECT COUNT(*) FROM {name}")[0][0]
                for name in ("users", "groups", "rules")
            }
        head = self.audit.head()
        return {
            "started_ms": self.started_ms,
            "authority": self._authority(),
            "targets": targets,
            **count,
            "audit_records": head.seq,
        } | ({"audit_head": str(head)} if caller.admin else {})

    def _authority(self) -> Json | None:
        """The end of our authority's certificate, and of the one before; None: another's is used."""
        if self.authority is None:
            return None
        former = self.authority.former_until
        return {
            "until_ms": milliseconds(self.authority.until.timestamp()),
            "former_until_ms": None if former is None else milliseconds(former.timestamp()),
        }

    # ---- credentials ----

    def _credentials(self, caller: Requester, params: Params) -> Json:
        if not params.given("requests"):
            wanted = self._wanted(params)
            params.done()
            [found] = self.issue(caller, [wanted])
            if isinstance(found, Refusal):
                raise found
            return found
        requests = params.take("requests")
        params.done()
        if not isinstance(requests, list) or not 0 < len(requests) <= BATCH_MOST:
            raise wrong(f"'requests' is a list of 1 to {BATCH_MOST}")
        many = []
        for fields in requests:
            each = Params(fields)
            many.append(self._wanted(each))
            each.done()
        return {"credentials": [as_json(each) for each in self.issue(caller, many)]}

    def _wanted(self, params: Params, whole: bool = False) -> Wanted:
        target = params.text("target")
        if not store.TARGET_NAME.fullmatch(target):  # the log keeps it
            raise wrong(f"'{target[:80]}' is no name of a target")
        obj, object_type = params.object(whole)
        inside = object_type in (ObjectType.USER_OBJECT, ObjectType.COLLECTION)
        if (inside and not obj.partition_id) or (not inside and obj.object_id):
            raise wrong(f"'{obj}' is no {object_type.name.lower()}")
        if object_type is ObjectType.ROOT and obj.partition_id:
            raise wrong(f"'{obj}' is not the root")
        range_ = params.take("range") or [0, 0]
        if (
            not isinstance(range_, list)
            or len(range_) != 2
            or not all(type(each) is int and 0 <= each <= U64_MAX for each in range_)
            or (any(range_) and object_type is not ObjectType.USER_OBJECT)
        ):
            raise wrong("'range' is [start, length] of a user object")
        tag = params.number("tag", 0, 1, 0xFFFF_FFFF) or None
        request = AccessRequest(
            *(target, obj, object_type, params.permissions()),
            *(params.method(SecurityMethod.CAPKEY), tag),
        )
        lifetime = params.number("lifetime_s", DEFAULT_LIFETIME_S, 1, LIFETIME_MOST_S)
        return Wanted(request, lifetime, (range_[0], range_[1]), params.flag("refused"))

    def _decide(
        self, tx: Transaction, caller: Requester, request: AccessRequest
    ) -> AllowedAccess | None:
        """By the rules there are now; the tag is what we gave the object."""
        record = store.target(tx, request.target)
        known = store.tag_of(tx, request.target, request.obj)
        asked = AccessRequest(
            *(request.target, request.obj, request.object_type, request.permissions),
            *(max(request.method, record.method), request.tag if known is None else known),
        )
        rules = store.rules_for(tx, caller.user, caller.groups)
        return decide(rules, caller.user, caller.groups, asked, self.now_ms())

    def issue(self, caller: Requester, wanted: list[Wanted]) -> list[Json | Refusal]:
        """Credentials, or why not, in the order asked for; all of it is in the log before it is
        given."""
        found: list[Json | Refusal] = []
        entries: list[tuple[str, Json]] = []
        for each in wanted:
            detail: Json = {
                "target": each.request.target,
                "object": str(each.request.obj),
                "type": each.request.object_type.name.lower(),
                "permissions": names_of(each.request.permissions),
            }
            try:
                credential, grant, system_id = self._one(caller, each)
            except Refusal as refusal:
                found.append(refusal)
                entries.append((REFUSED, detail | {"code": refusal.code}))
                continue
            found.append(capabilities.to_json(credential, system_id))
            capability = credential.capability
            detail |= {
                "discriminator": capability.discriminator.hex(),
                "expires_ms": capability.expires_ms,
                "method": capability.method.name,
                "key_version": capability.key_version,
                "tag": capability.policy_access_tag,
                "rules": grant.rules,
            }
            entries.append((GIVEN, detail))
        with self.database.transaction() as tx:
            for what, detail in entries:
                self.audit.append(tx, caller.user, what, **detail)
        return found

    def _one(self, caller: Requester, wanted: Wanted) -> tuple[Credential, AllowedAccess, bytes]:
        request = wanted.request
        grant = self._grant(caller, request)
        partition = capabilities.signing_partition(
            request.obj, request.object_type, request.permissions
        )
        if wanted.refused:
            self.keys.refused(request.target, partition, caller.user)
            if grant.tag:
                self._look_at_tag(request)
        signer = self.keys.signer(request.target, partition)
        # Both wait for the target, and meanwhile an administrator may have taken the rights back.
        with self.database.transaction() as tx:
            caller = Requester(store.enabled(tx, caller.user), store.groups_of(tx, caller.user))
        grant = self._grant(caller, request)
        expires_ms = min(grant.end_ms, self.now_ms() + wanted.lifetime_s * 1000)
        credential = signer.granted(
            *(grant, request.obj, request.object_type, caller.user, wanted.range, expires_ms)
        )
        return credential, grant, signer.system_id

    def _grant(self, caller: Requester, request: AccessRequest) -> AllowedAccess:
        """Raises: Refusal: the rules do not permit it."""
        try:
            with self.database.transaction() as tx:
                grant = self._decide(tx, caller, request)
        except Refusal:
            grant = None  # whether there is such a target is nobody's business
        if grant is None:
            raise Refusal("not-permitted", self._why_not(caller, request))
        return grant

    def _why_not(self, caller: Requester, request: AccessRequest) -> str:
        """The permissions that are missing.  The same for a target that is not known here."""
        with self.database.transaction() as tx:
            rules = store.rules_for(tx, caller.user, caller.groups)
        lacking = missing(rules, caller.user, caller.groups, request, self.now_ms())
        kind = request.object_type.name.lower().replace("_", " ")
        what = str(request.obj) if request.obj.partition_id else ""
        names = ", ".join(names_of(lacking))
        if not lacking:
            names = ", ".join(names_of(request.permissions))
            return (
                f"{caller.user} lacks {names} on {kind} {what}: rules give each of them, but not together "
                "(they have other policy access tags, or a weaker method)"
            )
        return f"{caller.user} lacks {names} on {kind} {what}".rstrip()

    def _look_at_tag(self, request: AccessRequest) -> None:
        """Ask the target for the object's tag; only of those that we have given one."""
        with self.database.transaction() as tx:
            known = store.tag_of(tx, request.target, request.obj)
        if known is not None:
            self.keys.look_at_tag(request.target, request.obj, request.object_type)

    def _check(self, caller: Requester, params: Params) -> Json:
        """Say whether a user would get a credential; only administrators may name another user.

        PID/*: for every object of the partition, those to be made too.
        """
        user = params.text("user", caller.user)
        wanted = self._wanted(params, whole=True)
        params.done()
        if user != caller.user and not caller.admin:
            raise Refusal("not-permitted", "you may ask only for yourself")
        with self.database.transaction() as tx:
            store.need_user(tx, user)
            enabled = store.is_enabled(tx, user)
            asked = Requester(user, store.groups_of(tx, user))
            grant = self._decide(tx, asked, wanted.request) if enabled else None
        if grant is None:
            lacking = self._why_not(asked, wanted.request) if enabled else f"{user} is disabled"
            return {"permitted": False, "why": lacking}
        return {
            "permitted": True,
            "rules": grant.rules,
            "method": grant.method.name,
            "tag": grant.tag,
            "expires_ms": min(grant.end_ms, self.now_ms() + wanted.lifetime_s * 1000),
        }

    def _partitions(self, caller: Requester, params: Params) -> Json:
        """The partitions of a target in which the caller may list jobs, by rules that name them."""
        target = params.text("target")
        params.done()
        with self.database.transaction() as tx:
            rules = store.rules_for(tx, caller.user, caller.groups)
            named = sorted({each.scope.obj.partition_id for each in rules})
            wanted = [
                AccessRequest(target, ref(each, JOBS_COLLECTION), ObjectType.COLLECTION, LIST_JOBS)
                for each in named
                if each
            ]
            now_ms = self.now_ms()
            found = [
                each.obj.partition_id
                for each in wanted
                if decide(rules, caller.user, caller.groups, each, now_ms) is not None
            ]
        return {"partitions": [hex(each) for each in found]}

    def _issued(self, caller: Requester, params: Params) -> Json:
        """Issued credentials: one's own, or for administrators everybody's."""
        user = params.text("user", "" if caller.admin else caller.user)
        discriminator = params.text("discriminator", "")
        most = params.number("most", 100, 1, ENTRIES_MOST)
        params.done()
        if user != caller.user and not caller.admin:
            raise Refusal("not-permitted", "you may ask only for yourself")
        if discriminator:
            found = self._trace(user, discriminator)
        else:
            found = self.audit.entries(most=most, who=user, what=GIVEN, newest=True)
        return {"credentials": [issued(each) for each in found]}

    def _trace(self, user: str, discriminator: str) -> list[AuditRecord]:
        if len(discriminator) != 24 or not set(discriminator) <= set("0123456789abcdef"):
            raise wrong("a discriminator has 24 hexadecimal digits")
        sql, values = "SELECT seq FROM audit WHERE what = ? AND detail LIKE ?", [GIVEN]
        values.append(f'%"discriminator": "{discriminator}"%')
        if user:  # by the index audit_of: other users wait for the database meanwhile
            sql, values = f"{sql} AND who = ?", [*values, user]
        rows: list[Row] = []
        for first in range(0, self.audit.head().seq, SEARCHED):
            with self.database.transaction() as tx:
                rows += tx.run(f"{sql} AND seq > ? AND seq <= ?", *values, first, first + SEARCHED)
        return [self.audit.entries(seq - 1, 1)[0] for (seq,) in rows]


def issued(entry: AuditRecord) -> Json:
    """A credential that was given, as it is listed: without its key, which nobody has kept."""
    return {
        "id": entry.detail["discriminator"],
        "user": entry.who,
        "at_ms": entry.at_ms,
        **{name: value for name, value in entry.detail.items() if name != "discriminator"},
    }


def as_json(found: Json | Refusal) -> Json:
    """One of a batch."""
    if isinstance(found, Refusal):
        return {"error": {"code": found.code, "message": str(found)}}
    return found
