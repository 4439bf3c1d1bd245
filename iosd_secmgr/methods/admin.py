# SPDX-License-Identifier: GPL-2.0-or-later
"""Methods of administrators: rules, users, groups, tokens, certificates, keys, the audit log.

The transaction of a change also writes it to the log, with its author.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.access.rules import DEFAULT_LIFETIME_S, Rule
from iosd_secmgr.keys.keystore import Level, TargetKey
from iosd_secmgr.keys.manager import new_target
from iosd_secmgr.keys.pki import USER_DAYS
from iosd_secmgr.methods.params import Params, wrong
from iosd_secmgr.methods.service import Service
from iosd_secmgr.methods.table import Json, MethodRow, Requester
from iosd_secmgr.records import store
from iosd_secmgr.records.audit import Head
from iosd_secmgr.records.store import RuleRecord
from pyosd.secmgr.names import names_of
from pyosd.secmgr.roles import rules_of
from pyosd.secmgr.scopes import Scope, ScopeKind
from pyosd.security.master_key import MasterKey
from pyosd.types import U64_MAX, ObjectRef, ObjectType
from pyosd.wire.capability import Algorithm, Permission, SecurityMethod

TIME_MOST = 1 << 47
LIFETIME_MOST_S = 86400
LEVELS = {"working": Level.WORKING, "partition": Level.PARTITION, "root": Level.ROOT}
ROTATE_LEAST_S = 60
TAGGED = (ScopeKind.OBJECT, ScopeKind.COLLECTION, ScopeKind.OBJECTS, ScopeKind.COLLECTIONS)


def admin_methods(service: Service) -> dict[str, MethodRow]:
    """The rows of the table that only administrators may use."""
    rules, people, keys = RuleMethods(service), PeopleMethods(service), KeyMethods(service)
    return {
        name: MethodRow(run)
        for name, run in {
            "acl.ls": rules.ls,
            "acl.add": rules.add,
            "acl.rm": rules.remove,
            "acl.revoke": rules.revoke,
            "user.ls": people.users,
            "user.add": people.add_user,
            "user.rm": people.remove_user,
            "user.disable": people.disable,
            "group.ls": people.groups,
            "group.add": people.add_group,
            "group.rm": people.remove_group,
            "group.join": people.join,
            "token.ls": people.tokens,
            "token.add": people.add_token,
            "token.rm": people.remove_token,
            "certificate.ls": people.certificates,
            "certificate.sign": people.sign,
            "certificate.rm": people.remove_certificate,
            "key.ls": keys.ls,
            "key.import": keys.import_,
            "key.rotate": keys.rotate,
            "key.freeze": keys.freeze,
            "key.set-master": keys.set_master,
            "key.forget": keys.forget,
            "audit.show": keys.audit,
            "audit.verify": keys.verify,
        }.items()
    }


def rule_json(record: RuleRecord) -> Json:
    """A rule as it is listed."""
    rule = record.rule
    return {
        "id": rule.id,
        "subject": rule.subject,
        "group": rule.group,
        "target": rule.target,
        "object": str(rule.scope),
        "kind": str(rule.scope.kind),
        "permissions": names_of(rule.permissions),
        "tag": rule.tag,
        "until_ms": rule.until_ms,
        "lifetime_s": rule.lifetime_s,
        "method": rule.method.name,
        "made_ms": record.made_ms,
        "made_by": record.made_by,
        "note": record.note,
    }


class RuleMethods:
    """Methods acl.*."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def ls(self, caller: Requester, params: Params) -> Json:
        """List all rules."""
        params.done()
        with self._service.database.transaction() as tx:
            return {"rules": [rule_json(each) for each in store.rules(tx)]}

    def add(self, caller: Requester, params: Params) -> Json:
        """Add a rule, or all rules of a role."""
        user, group = params.text("user", ""), params.text("group", "")
        if bool(user) == bool(group):
            raise wrong("say either 'user' or 'group'")
        granted = self._granted(params)
        tag = params.number("tag", 0, 1, 0xFFFF_FFFF)
        if tag and any(scope.kind not in TAGGED for scope, _ in granted):
            raise wrong("a policy access tag is of user objects or collections")
        model = Rule(
            subject=user or group,
            group=bool(group),
            target=params.text("target"),
            scope=granted[0][0],
            permissions=granted[0][1],
            tag=tag,
            until_ms=params.number("until_ms", 0, 1, TIME_MOST),
            lifetime_s=params.number("lifetime_s", DEFAULT_LIFETIME_S, 1, LIFETIME_MOST_S),
            method=params.method(SecurityMethod.CAPKEY),
        )
        note = params.text("note", "")
        params.done()
        service = self._service
        made = []
        with service.database.transaction() as tx:
            for scope, permissions in granted:
                rule = replace(model, scope=scope, permissions=permissions)
                id_ = store.add_rule(tx, rule, caller.user, note, service.now_ms())
                record = RuleRecord(replace(rule, id=id_), service.now_ms(), caller.user, note)
                made.append(rule_json(record))
                service.audit.append(tx, caller.user, "acl.add", rule=made[-1])
        return made[0] | {"rules": made}

    def _granted(self, params: Params) -> list[tuple[Scope, Permission]]:
        """Subject of the new rules: a role in a partition, or one object and permissions."""
        role = params.text("role", "")
        text, object_type = params.text("object"), params.type()
        try:
            if role:
                return rules_of(role, ObjectRef.parse(text))
            return [(Scope.parse(text, object_type), params.permissions())]
        except ValueError as error:
            raise wrong(str(error)) from None

    def remove(self, caller: Requester, params: Params) -> Json:
        """Remove a rule.  Credentials issued by it stay valid until they expire."""
        id_ = params.number("id", None, 1, U64_MAX >> 1)
        params.done()
        with self._service.database.transaction() as tx:
            fields = rule_json(store.remove_rule(tx, id_))
            self._service.audit.append(tx, caller.user, "acl.rm", rule=fields)
        return fields

    def revoke(self, caller: Requester, params: Params) -> Json:
        """Give an object another policy access tag."""
        target = params.text("target")
        obj, object_type = params.object()
        params.done()
        if object_type not in (ObjectType.USER_OBJECT, ObjectType.COLLECTION) or not obj.object_id:
            raise wrong("policy access tags are of user objects and collections")
        return {"tag": self._service.keys.revoke(caller.user, target, obj, object_type)}


class PeopleMethods:
    """Methods user.*, group.*, token.*, certificate.*."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def _log(self, tx: Any, caller: Requester, what: str, **detail: Any) -> Json:
        self._service.audit.append(tx, caller.user, what, **detail)
        return detail

    def users(self, caller: Requester, params: Params) -> Json:
        """List all users."""
        params.done()
        with self._service.database.transaction() as tx:
            rows = store.users(tx)
        return {
            "users": [
                {"name": name, "disabled": disabled, "groups": groups}
                for name, disabled, groups in rows
            ]
        }

    def add_user(self, caller: Requester, params: Params) -> Json:
        """Add a user, without any permission."""
        name = params.text("name")
        params.done()
        with self._service.database.transaction() as tx:
            store.add_user(tx, name, self._service.now_ms())
            return self._log(tx, caller, "user.add", name=name)

    def remove_user(self, caller: Requester, params: Params) -> Json:
        """Remove a user with all rules, tokens and certificates."""
        name = params.text("name")
        params.done()
        with self._service.database.transaction() as tx:
            store.remove_user(tx, name)
            store.keep_an_admin(tx)
            return self._log(tx, caller, "user.rm", name=name)

    def disable(self, caller: Requester, params: Params) -> Json:
        """Disable a user, or enable the user again."""
        name, disabled = params.text("name"), not params.flag("enable")
        params.done()
        with self._service.database.transaction() as tx:
            store.set_disabled(tx, name, disabled)
            store.keep_an_admin(tx)
            return self._log(tx, caller, "user.disable", name=name, disabled=disabled)

    def groups(self, caller: Requester, params: Params) -> Json:
        """List all groups with their members."""
        params.done()
        with self._service.database.transaction() as tx:
            rows = store.groups(tx)
        return {"groups": [{"name": name, "members": members} for name, members in rows]}

    def add_group(self, caller: Requester, params: Params) -> Json:
        """Add a group."""
        name = params.text("name")
        params.done()
        with self._service.database.transaction() as tx:
            store.add_group(tx, name, self._service.now_ms())
            return self._log(tx, caller, "group.add", name=name)

    def remove_group(self, caller: Requester, params: Params) -> Json:
        """Remove a group and its rules."""
        name = params.text("name")
        params.done()
        with self._service.database.transaction() as tx:
            store.remove_group(tx, name)
            return self._log(tx, caller, "group.rm", name=name)

    def join(self, caller: Requester, params: Params) -> Json:
        """Put a user into a group, or remove the user from it."""
        group, user, member = params.text("group"), params.text("user"), not params.flag("leave")
        params.done()
        with self._service.database.transaction() as tx:
            store.set_member(tx, group, user, member)
            store.keep_an_admin(tx)
            return self._log(tx, caller, "group.join", group=group, user=user, member=member)

    def tokens(self, caller: Requester, params: Params) -> Json:
        """List all tokens, without their values."""
        params.done()
        with self._service.database.transaction() as tx:
            return {"tokens": [vars(each) for each in store.tokens(tx)]}

    def add_token(self, caller: Requester, params: Params) -> Json:
        """Make a token.  Only this answer has its value."""
        user, label = params.text("user"), params.text("label", "")
        until_ms = params.number("until_ms", 0, 1, TIME_MOST)
        params.done()
        now_ms = self._service.now_ms()
        with self._service.database.transaction() as tx:
            id_, token = store.add_token(tx, user, label, until_ms, now_ms)
            said = self._log(
                *(tx, caller, "token.add"), id=id_, user=user, label=label, until_ms=until_ms
            )
        return {**said, "token": token}

    def remove_token(self, caller: Requester, params: Params) -> Json:
        """Remove a token.  It is void at once."""
        id_ = params.text("id")
        params.done()
        with self._service.database.transaction() as tx:
            user = store.remove_token(tx, id_)
            return self._log(tx, caller, "token.rm", id=id_, user=user)

    def certificates(self, caller: Requester, params: Params) -> Json:
        """List all certificates that our authority has issued to users."""
        params.done()
        with self._service.database.transaction() as tx:
            rows = store.certificates(tx)
        return {
            "certificates": [
                {"id": serial, "user": user, "until_ms": until_ms, "made_ms": made_ms}
                for serial, user, until_ms, made_ms in rows
            ]
        }

    def sign(self, caller: Requester, params: Params) -> Json:
        """Issue a certificate for a user's key."""
        user, request = params.text("user"), params.text("request")
        days = params.number("days", USER_DAYS, 1, 825)
        params.done()
        authority = self._service.authority
        if authority is None:
            raise Refusal("conflict", "certificates of this security manager come from elsewhere")
        serial, pem, until_ms = authority.sign_user(user, request.encode(), days)
        with self._service.database.transaction() as tx:
            store.add_certificate(tx, serial, user, until_ms, self._service.now_ms())
            said = self._log(
                *(tx, caller, "certificate.sign"), id=serial, user=user, until_ms=until_ms
            )
        return {**said, "certificate": pem.decode()}

    def remove_certificate(self, caller: Requester, params: Params) -> Json:
        """Remove a certificate.  It is void at once."""
        serial = params.text("id")
        params.done()
        with self._service.database.transaction() as tx:
            user = store.remove_certificate(tx, serial)
            return self._log(tx, caller, "certificate.rm", id=serial, user=user)


class KeyMethods:
    """Methods key.* and audit.*."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def ls(self, caller: Requester, params: Params) -> Json:
        """List of a target's keys, without their values."""
        target = params.text("target")
        params.done()
        return {"keys": [key_json(each) for each in self._service.keys.keys(target)]}

    def import_(self, caller: Requester, params: Params) -> Json:
        """Import a target by its master key, and replace that key unless a parameter forbids it."""
        try:
            master = MasterKey.parse(params.text("master"))
        except ValueError as error:
            raise wrong(f"no master key file: {error}") from None
        rotate_s = params.number("rotate_s", 0, 0, 366 * 86400)
        if 0 < rotate_s < ROTATE_LEAST_S:
            raise wrong(f"working keys rotate every {ROTATE_LEAST_S} s at most")
        try:
            algorithm = Algorithm[params.text("algorithm", Algorithm.HMAC_SHA256.name)]
        except KeyError:
            raise wrong("'algorithm' is none of HMAC_SHA256, HMAC_SHA1") from None
        record = new_target(
            params.text("target"),
            params.text("url"),
            algorithm,
            params.method(SecurityMethod.CAPKEY),
            rotate_s,
        )
        login, keep = params.text("login", ""), params.flag("keep_master")
        params.done()
        keys = self._service.keys
        keys.add(caller.user, record, master, login)
        if keep:
            keys.rotate(caller.user, record.name, Level.ROOT)
        else:
            keys.set_master(caller.user, record.name)
        return {
            "target": record.name,
            "keys": len(keys.keys(record.name)),
            "open": keys.open_to_all(caller.user, record.name),
        }

    def rotate(self, caller: Requester, params: Params) -> Json:
        """Set new keys."""
        target, level = params.text("target"), params.text("level", "working")
        partition = params.number("partition", 0, 0, U64_MAX) if params.given("partition") else None
        params.done()
        if level not in LEVELS:
            raise wrong(f"'level' is none of {', '.join(LEVELS)}")
        found = self._service.keys.rotate(caller.user, target, LEVELS[level], partition)
        return {"target": target, "level": level, "partitions": found}

    def freeze(self, caller: Requester, params: Params) -> Json:
        """Void all credentials of a partition."""
        target = params.text("target")
        partition = params.number("partition", None, 0, U64_MAX)
        params.done()
        found = self._service.keys.freeze(caller.user, target, partition)
        return {"target": target, "partition": partition, "versions": found}

    def set_master(self, caller: Requester, params: Params) -> Json:
        """Set a new master key, and all keys below it."""
        target, group = params.text("target"), params.number("group", 14, 14, 15)
        params.done()
        self._service.keys.set_master(caller.user, target, group)
        return {"target": target, "group": group}

    def forget(self, caller: Requester, params: Params) -> Json:
        """Forget a target.  Without its master key nobody can change its keys again."""
        target = params.text("target")
        params.done()
        self._service.keys.forget(caller.user, target)
        return {"target": target}

    def audit(self, caller: Requester, params: Params) -> Json:
        """List records of the log."""
        after = params.number("after", 0, 0, U64_MAX >> 1)
        most = params.number("most", 100, 1, 1000)
        who, what = params.text("who", ""), params.text("what", "")
        newest = not after
        params.done()
        found = self._service.audit.entries(after, most, who=who, what=what, newest=newest)
        return {
            "records": [
                {
                    "id": each.seq,
                    "at_ms": each.at_ms,
                    "who": each.who,
                    "what": each.what,
                    "detail": each.detail,
                    "hash": each.hash.hex(),
                }
                for each in found
            ]
        }

    def verify(self, caller: Requester, params: Params) -> Json:
        """Verify the log: its first fault, if there is one."""
        text = params.text("head", "")
        params.done()
        try:
            known = Head.parse(text) if text else None
        except ValueError:
            raise wrong(f"'{text[:80]}' is not SEQ:HASH") from None
        problems = list(self._service.audit.verify(known))
        return {
            "whole": not problems,
            "problems": problems,
            "head": str(self._service.audit.head()),
        }


def key_json(key: TargetKey) -> Json:
    """A key as it is listed."""
    slot = key.slot
    return {
        "level": slot.level.name.lower(),
        "partition": slot.partition_id,
        "version": slot.version,
        "identifier": key.identifier.hex(),
        "current": key.current,
        "made_ms": key.made_ms,
        "retired_ms": key.retired_ms,
    }
