# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameters of a request, each checked before it is used.  Raises everywhere: Refusal."""

from __future__ import annotations

from typing import Any

from iosd_secmgr.access.refusal import Refusal
from pyosd.secmgr.names import TYPES, object_type_of, permissions_of
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Permission, SecurityMethod

TEXT_MOST = 8192


def wrong(text: str) -> Refusal:
    """A request that nobody can do."""
    return Refusal("bad-request", text)


def storable(text: str) -> bool:
    """Whether a database takes it: JSON can have half a character, which UTF-8 has not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


class Params:
    """Each is taken once; done() refuses what is left."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
            raise wrong("the parameters are no JSON object")
        self._fields = dict(fields)

    def done(self) -> None:
        """Nothing else was said."""
        if self._fields:
            raise wrong(f"no such parameter: '{next(iter(self._fields))[:80]}'")

    def given(self, name: str) -> bool:
        """Whether it is there."""
        return self._fields.get(name) is not None

    def take(self, name: str) -> Any:
        """As it is; None: absent."""
        return self._fields.pop(name, None)

    def text(self, name: str, default: str | None = None) -> str:
        """A text; without default one must be given."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or len(value) > TEXT_MOST or not storable(value):
            raise wrong(f"'{name}' is missing, or no text")
        return value

    def number(self, name: str, default: int | None, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise wrong(f"'{name}' is missing, or not a number of {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; absent: false."""
        value = self.take(name)
        if not isinstance(value, bool | None):
            raise wrong(f"'{name}' is neither true nor false")
        return bool(value)

    def names(self, name: str) -> list[str]:
        """A list of texts."""
        value = self.take(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise wrong(f"'{name}' is missing, or no list of texts")
        return value

    def permissions(self) -> Permission:
        """Names of permissions."""
        try:
            return permissions_of(self.names("permissions"))
        except ValueError as error:
            raise wrong(str(error)) from None

    def method(self, default: SecurityMethod) -> SecurityMethod:
        """A security method by name; NOSEC needs no credential."""
        text = self.text("method", default.name)
        try:
            method = SecurityMethod[text.upper()]
        except KeyError:
            method = SecurityMethod.NOSEC
        if method is SecurityMethod.NOSEC:
            raise wrong(f"'{text[:80]}' is none of CAPKEY, CMDRSP, ALLDATA")
        return method

    def type(self) -> ObjectType | None:
        """An object type by name; None: not said."""
        text = self.text("type", "")
        if text and text not in TYPES:
            raise wrong(f"'{text[:80]}' is none of {', '.join(TYPES)}")
        return TYPES.get(text)

    def object(self, whole: bool = False) -> tuple[ObjectRef, ObjectType]:
        """An address and its type.

        whole: also PID/*, all user objects or collections of a partition: their address has no object id.
        """
        text = self.text("object")
        every = whole and text.endswith("/*")
        try:
            obj = ObjectRef.parse(text.removesuffix("/*") if every else text)
            if every and (obj.object_id or not obj.partition_id):
                raise ValueError
        except ValueError:
            forms = "root, PID, PID/OID or PID/*" if whole else "root, PID or PID/OID"
            raise wrong(f"'{text[:80]}' is not {forms}") from None
        if not every:
            return obj, self.type() or object_type_of(obj)
        inside = self.type() or ObjectType.USER_OBJECT
        if inside not in (ObjectType.USER_OBJECT, ObjectType.COLLECTION):
            raise wrong(f"'{text[:80]}' is neither user objects nor collections")
        return obj, inside
