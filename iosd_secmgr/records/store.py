# SPDX-License-Identifier: GPL-2.0-or-later
"""Records of the access-control database: users, groups, tokens, certificates, rules, targets, tags.

All within a transaction that the caller has begun.  Not here: keys (keys/keystore.py), permissions and
log records of changes (methods/).
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.access.rules import Rule
from iosd_secmgr.records.database import Row, Transaction, hex_id
from pyosd.secmgr.scopes import Scope, ScopeKind
from pyosd.types import ObjectRef, ref
from pyosd.wire.capability import Algorithm, Permission, SecurityMethod

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
TARGET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,222}")
ADMIN = "admin"
"""The group whose members change rules and keys."""
TOKEN_PREFIX = "iosd-"


@dataclass(frozen=True)
class Token:
    """A token as the database knows it: not the token itself."""

    id: str
    user: str
    label: str
    until_ms: int
    made_ms: int


@dataclass(frozen=True)
class TargetRecord:
    """A target whose keys we have.  name: its iSCSI name.  login: sealed CHAP name and secret.

    method: the least its capabilities have.  rotate_s: how often working keys change, 0: never.
    """

    name: str
    url: str
    system_id: bytes
    algorithm: Algorithm
    method: SecurityMethod
    rotate_s: int
    login: bytes = b""
    made_ms: int = 0


@dataclass(frozen=True)
class RuleRecord:
    """A rule, who made it, when and why."""

    rule: Rule
    made_ms: int
    made_by: str
    note: str


def checked_name(text: str, what: str) -> str:
    """A name that is one.  Raises: Refusal."""
    if not NAME.fullmatch(text):
        raise Refusal("bad-request", f"'{text[:80]}' is no name of a {what}")
    return text


def new_token() -> str:
    """256 random bits as people can copy them."""
    return TOKEN_PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")


def token_hash(token: str) -> bytes:
    """The stored form. A plain hash of such a random value discloses nothing."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


# ---- users and groups ----


def add_user(tx: Transaction, name: str, now_ms: int) -> None:
    """Raises: Refusal: there is one."""
    checked_name(name, "user")
    if tx.run("SELECT 1 FROM users WHERE name = ?", name):
        raise Refusal("conflict", f"there is a user '{name}' already")
    tx.run("INSERT INTO users (name, made_ms) VALUES (?, ?)", name, now_ms)


def need_user(tx: Transaction, name: str) -> None:
    """Raises: Refusal: there is no such user."""
    if not tx.run("SELECT 1 FROM users WHERE name = ?", name):
        raise Refusal("absent", f"there is no user '{name}'")


def need_group(tx: Transaction, name: str) -> None:
    """Raises: Refusal: there is no such group."""
    if not tx.run("SELECT 1 FROM groups WHERE name = ?", name):
        raise Refusal("absent", f"there is no group '{name}'")


def remove_user(tx: Transaction, name: str) -> None:
    """With tokens, certificates, memberships and rules.  Raises: Refusal."""
    need_user(tx, name)
    tx.run("DELETE FROM rules WHERE subject = ? AND is_group = 0", name)
    tx.run("DELETE FROM users WHERE name = ?", name)


def set_disabled(tx: Transaction, name: str, disabled: bool) -> None:
    """Disable a user, or enable the user again.  Raises: Refusal."""
    need_user(tx, name)
    tx.run("UPDATE users SET disabled = ? WHERE name = ?", int(disabled), name)


def users(tx: Transaction) -> list[tuple[str, bool, list[str]]]:
    """Name, disabled, groups."""
    of: dict[str, list[str]] = {}
    for group, name in tx.run("SELECT group_name, user_name FROM members ORDER BY group_name"):
        of.setdefault(name, []).append(group)
    rows = tx.run("SELECT name, disabled FROM users ORDER BY name")
    return [(name, bool(disabled), of.get(name, [])) for name, disabled in rows]


def is_enabled(tx: Transaction, name: str) -> bool:
    """Whether there is such a user who is not disabled."""
    return bool(tx.run("SELECT 1 FROM users WHERE name = ? AND disabled = 0", name))


def is_user(tx: Transaction, name: str) -> bool:
    """Whether there is such a user, disabled or not."""
    return bool(tx.run("SELECT 1 FROM users WHERE name = ?", name))


def enabled(tx: Transaction, name: str) -> str:
    """The user who has proven to be this one.  Raises: Refusal: they are disabled."""
    if not is_enabled(tx, name):
        raise Refusal(
            "not-permitted",
            f"user '{name}' is disabled; an administrator can enable the user again: "
            f"osd acl user enable {name}",
        )
    return name


def groups_of(tx: Transaction, name: str) -> frozenset[str]:
    """Groups of a user."""
    rows = tx.run("SELECT group_name FROM members WHERE user_name = ?", name)
    return frozenset(str(row[0]) for row in rows)


def add_group(tx: Transaction, name: str, now_ms: int) -> None:
    """Raises: Refusal: there is one."""
    checked_name(name, "group")
    if tx.run("SELECT 1 FROM groups WHERE name = ?", name):
        raise Refusal("conflict", f"there is a group '{name}' already")
    tx.run("INSERT INTO groups VALUES (?, ?)", name, now_ms)


def remove_group(tx: Transaction, name: str) -> None:
    """With its rules.  Raises: Refusal."""
    need_group(tx, name)
    if name == ADMIN:
        raise Refusal(
            "conflict", f"'{ADMIN}' cannot be removed: without it nobody could change anything"
        )
    tx.run("DELETE FROM rules WHERE subject = ? AND is_group = 1", name)
    tx.run("DELETE FROM groups WHERE name = ?", name)


def groups(tx: Transaction) -> list[tuple[str, list[str]]]:
    """Name, members."""
    of: dict[str, list[str]] = {}
    for group, name in tx.run("SELECT group_name, user_name FROM members ORDER BY user_name"):
        of.setdefault(group, []).append(name)
    rows = tx.run("SELECT name FROM groups ORDER BY name")
    return [(name, of.get(name, [])) for (name,) in rows]


def set_member(tx: Transaction, group: str, user: str, member: bool) -> None:
    """Put somebody in, or take out.  Raises: Refusal."""
    need_group(tx, group)
    need_user(tx, user)
    if member:
        tx.run("INSERT INTO members VALUES (?, ?) ON CONFLICT DO NOTHING", group, user)
    else:
        tx.run("DELETE FROM members WHERE group_name = ? AND user_name = ?", group, user)


def keep_an_admin(tx: Transaction) -> None:
    """Raises: Refusal: nobody would be left who could change anything."""
    sql = (
        "SELECT 1 FROM members JOIN users ON user_name = name "
        "WHERE group_name = ? AND disabled = 0 LIMIT 1"
    )
    if not tx.run(sql, ADMIN):
        raise Refusal("conflict", "no administrator would be left")


# ---- how they prove who they are ----


def add_token(
    tx: Transaction, user: str, label: str, until_ms: int, now_ms: int
) -> tuple[str, str]:
    """A new one: its id, and the token, which is nowhere else.  Raises: Refusal."""
    need_user(tx, user)
    token, id_ = new_token(), secrets.token_hex(4)
    sql = "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)"
    tx.run(sql, id_, token_hash(token), user, label[:80], until_ms, now_ms)
    return id_, token


def remove_token(tx: Transaction, id_: str) -> str:
    """Returns: whose it was.  Raises: Refusal."""
    rows = tx.run("SELECT user_name FROM tokens WHERE id = ?", id_)
    if not rows:
        raise Refusal("absent", f"there is no token '{id_}'")
    tx.run("DELETE FROM tokens WHERE id = ?", id_)
    return str(rows[0][0])


def tokens(tx: Transaction) -> list[Token]:
    """All there are."""
    rows = tx.run(
        "SELECT id, user_name, label, until_ms, made_ms FROM tokens ORDER BY user_name, made_ms"
    )
    return [Token(*row) for row in rows]


def user_of_token(tx: Transaction, token: str, now_ms: int) -> str | None:
    """Its owner, if it is still valid.

    Raises: Refusal: they are disabled.  Only somebody with the right token hears that.
    """
    rows = tx.run(
        "SELECT user_name FROM tokens JOIN users ON user_name = name "
        "WHERE hash = ? AND (until_ms = 0 OR until_ms > ?)",
        *(token_hash(token), now_ms),
    )
    return enabled(tx, str(rows[0][0])) if rows else None


def add_certificate(tx: Transaction, serial: str, user: str, until_ms: int, now_ms: int) -> None:
    """One that our own authority signed.  Raises: Refusal."""
    need_user(tx, user)
    tx.run("INSERT INTO certificates VALUES (?, ?, ?, ?)", serial, user, until_ms, now_ms)


def remove_certificate(tx: Transaction, serial: str) -> str:
    """Returns: whose it was.  Raises: Refusal."""
    rows = tx.run("SELECT user_name FROM certificates WHERE serial = ?", serial)
    if not rows:
        raise Refusal("absent", f"there is no certificate '{serial}'")
    tx.run("DELETE FROM certificates WHERE serial = ?", serial)
    return str(rows[0][0])


def certificates(tx: Transaction) -> list[tuple[str, str, int, int]]:
    """Serial, user, until, made."""
    rows = tx.run(
        "SELECT serial, user_name, until_ms, made_ms FROM certificates ORDER BY user_name"
    )
    return [(str(row[0]), str(row[1]), int(row[2]), int(row[3])) for row in rows]


def has_certificate(tx: Transaction, serial: str, user: str) -> bool:
    """Whether we gave it to that user and have not taken it back."""
    sql = "SELECT 1 FROM certificates WHERE serial = ? AND user_name = ?"
    return bool(tx.run(sql, serial, user))


# ---- rules ----

RULE_COLUMNS = (
    "id, subject, is_group, target, kind, partition_id, object_id, permissions, tag, until_ms, "
    "lifetime_s, method, made_ms, made_by, note"
)


def _rule(row: Row) -> RuleRecord:
    id_, subject, group, target, kind, pid, oid, permissions, tag, until, lifetime, method = row[
        :12
    ]
    rule = Rule(
        subject=subject,
        group=bool(group),
        target=target,
        scope=Scope(ScopeKind(kind), ref(int(pid, 16), int(oid, 16))),
        permissions=Permission(permissions),
        tag=tag,
        until_ms=until,
        lifetime_s=lifetime,
        method=SecurityMethod(method),
        id=id_,
    )
    return RuleRecord(rule, *row[12:])


def add_rule(tx: Transaction, rule: Rule, by: str, note: str, now_ms: int) -> int:
    """Returns: its id.  Raises: Refusal: there is no such subject or target."""
    (need_group if rule.group else need_user)(tx, rule.subject)
    if rule.target != "*":
        target(tx, rule.target)
    obj = rule.scope.obj
    rows = tx.run(
        f"INSERT INTO rules ({RULE_COLUMNS[4:]}) VALUES ({', '.join('?' * 14)}) RETURNING id",
        *(rule.subject, int(rule.group), rule.target, str(rule.scope.kind)),
        *(hex_id(obj.partition_id), hex_id(obj.object_id)),
        *(int(rule.permissions), rule.tag, rule.until_ms, rule.lifetime_s, int(rule.method)),
        *(now_ms, by, note[:200]),
    )
    return int(rows[0][0])


def remove_rule(tx: Transaction, id_: int) -> RuleRecord:
    """Returns: what it was.  Raises: Refusal."""
    rows = tx.run(f"SELECT {RULE_COLUMNS} FROM rules WHERE id = ?", id_)
    if not rows:
        raise Refusal("absent", f"there is no rule {id_}")
    tx.run("DELETE FROM rules WHERE id = ?", id_)
    return _rule(rows[0])


def rules(tx: Transaction) -> list[RuleRecord]:
    """All there are."""
    return [_rule(row) for row in tx.run(f"SELECT {RULE_COLUMNS} FROM rules ORDER BY id")]


def rules_for(tx: Transaction, user: str, in_groups: frozenset[str]) -> list[Rule]:
    """Those that name the user or a group."""
    marks = ", ".join("?" * len(in_groups)) or "NULL"
    rows = tx.run(
        f"SELECT {RULE_COLUMNS} FROM rules WHERE (is_group = 0 AND subject = ?) "
        f"OR (is_group = 1 AND subject IN ({marks})) ORDER BY id",
        *(user, *sorted(in_groups)),
    )
    return [_rule(row).rule for row in rows]


# ---- targets ----

TARGET_COLUMNS = "name, url, system_id, algorithm, method, rotate_s, login, made_ms"


def _target(row: Row) -> TargetRecord:
    name, url, system_id, algorithm, method, rotate_s, login, made_ms = row
    return TargetRecord(
        *(name, url, bytes(system_id), Algorithm(algorithm), SecurityMethod(method)),
        *(rotate_s, bytes(login), made_ms),
    )


def put_target(tx: Transaction, record: TargetRecord) -> None:
    """Add it, or take its new description."""
    if not TARGET_NAME.fullmatch(record.name):
        raise Refusal("bad-request", f"'{record.name[:80]}' is no name of a target")
    names = TARGET_COLUMNS.split(", ")
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    tx.run(
        f"INSERT INTO targets ({TARGET_COLUMNS}) VALUES ({', '.join('?' * len(names))}) "
        f"ON CONFLICT (name) DO UPDATE SET {changes}",
        *(record.name, record.url, record.system_id, int(record.algorithm), int(record.method)),
        *(record.rotate_s, record.login, record.made_ms),
    )


def target(tx: Transaction, name: str) -> TargetRecord:
    """Raises: Refusal: we have no keys of it."""
    rows = tx.run(f"SELECT {TARGET_COLUMNS} FROM targets WHERE name = ?", name)
    if not rows:
        raise Refusal(
            "absent", f"there is no target '{name[:80]}' here; 'osd key import' hands one over"
        )
    return _target(rows[0])


def targets(tx: Transaction) -> list[TargetRecord]:
    """All there are."""
    return [_target(row) for row in tx.run(f"SELECT {TARGET_COLUMNS} FROM targets ORDER BY name")]


def remove_target(tx: Transaction, name: str) -> None:
    """With its keys and the rules about it.  Raises: Refusal."""
    target(tx, name)
    tx.run("DELETE FROM rules WHERE target = ?", name)
    tx.run("DELETE FROM targets WHERE name = ?", name)


# ---- policy access tags ----


def tag_of(tx: Transaction, name: str, obj: ObjectRef) -> int | None:
    """The tag an object has; None: none that we know."""
    return _tags(tx, name, obj)[0] or None


def next_tag(tx: Transaction, name: str, obj: ObjectRef) -> int:
    """One that it never had, as far as we know."""
    return _tags(tx, name, obj)[1] % 0xFFFF_FFFF + 1


def _tags(tx: Transaction, name: str, obj: ObjectRef) -> tuple[int, int]:
    """The present one, 0: none, and the highest there was."""
    rows = tx.run(
        "SELECT tag, highest FROM tags WHERE target = ? AND partition_id = ? AND object_id = ?",
        *(name, hex_id(obj.partition_id), hex_id(obj.object_id)),
    )
    return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)


def set_tag(tx: Transaction, name: str, obj: ObjectRef, tag: int) -> None:
    """Remember it."""
    tx.run(
        "INSERT INTO tags VALUES (?, ?, ?, ?, ?) ON CONFLICT (target, partition_id, object_id) "
        "DO UPDATE SET tag = excluded.tag, highest = excluded.highest",
        *(name, hex_id(obj.partition_id), hex_id(obj.object_id)),
        *(tag, max(tag, _tags(tx, name, obj)[1])),
    )
