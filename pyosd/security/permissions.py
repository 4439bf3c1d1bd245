# SPDX-License-Identifier: GPL-2.0-or-later
"""The permissions that a request needs: the objects it touches, and the permissions on each.

The rows are those of the target's command table, which a test compares.  Pure.
Source: osd2-wire 6.3; docs/security-protocol.md.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pyosd.types import (
    FIRST_ID,
    ROOT,
    AttributeId,
    AttributeValue,
    ObjectRef,
    ObjectType,
    ref,
)
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.capability import Need, Permission
from pyosd.wire.cdb import (
    NO_ATTRIBUTES,
    AttributeLists,
    AttributePage,
    Request,
    ServiceAction,
    SetOne,
)

__all__ = ["COMMANDS", "CommandNeeds", "attaches", "is_of_job", "needs_of", "other_type"]

_SECURITY_PAGES = {
    Page.USER_SECURITY,
    Page.PARTITION_SECURITY,
    Page.PARTITION_ACCESS,
    Page.COLLECTION_SECURITY,
    Page.ROOT_SECURITY,
}
_QUOTA_PAGES = {Page.USER_QUOTAS, Page.PARTITION_QUOTAS, Page.ROOT_QUOTAS}
_STACK_PAGES = {Page.STACK, Page.COLLECTION_STACK, Page.PARTITION_STACK, Page.ROOT_STACK}
_HOOK_PAGES = {Page.HOOKS, Page.PARTITION_HOOKS, Page.ROOT_HOOKS}
_SOURCE = AttributeId(Page.STACK, 17)
"""The object whose data an object shows."""
_BASE = AttributeId(Page.PARTITION_STACK, 17)
"""The partition whose objects a partition shows."""
_PARTITION_PAGES, _COLLECTION_PAGES, _ROOT_PAGES = 0x3000_0000, 0x6000_0000, 0x9000_0000
_LIST_ATTR, _REMOVE_SCOPE, _REPLACE = 0x40, 0x07, 0x02
_COPY_SOURCE = 0x0101
_R, _P, _C, _U = (
    ObjectType.ROOT,
    ObjectType.PARTITION,
    ObjectType.COLLECTION,
    ObjectType.USER_OBJECT,
)
_S, _A = ServiceAction, Permission
_TO_JOIN = _A.READ | _A.WRITE | _A.APPEND | _A.REMOVE | _A.GET_ATTR | _A.SET_ATTR
"""To put an object into a collection: all that rights on a collection may lend."""


_TO_CHANGE = _A.READ | _A.WRITE | _A.CREATE | _A.REMOVE
"""To let others change the objects of a partition."""


class CommandNeeds(NamedTuple):
    """A row: which types of object a command addresses, and what it needs on them."""

    types: tuple[ObjectType, ...]
    permissions: Permission


COMMANDS: dict[ServiceAction, CommandNeeds] = {
    _S.OBJECT_STRUCTURE_CHECK: CommandNeeds((_R, _P), _A.DEV_MGMT),
    _S.FORMAT_OSD: CommandNeeds((_R,), _A.OBJ_MGMT | _A.GLOBAL),
    _S.CREATE: CommandNeeds((_U,), _A.CREATE),
    _S.LIST: CommandNeeds((_R, _P), _A.READ),
    _S.PUNCH: CommandNeeds((_U,), _A.WRITE),
    _S.READ: CommandNeeds((_U,), _A.READ),
    _S.WRITE: CommandNeeds((_U,), _A.WRITE),
    _S.APPEND: CommandNeeds((_U,), _A.APPEND),
    _S.FLUSH: CommandNeeds((_U,), _A.OBJ_MGMT),
    _S.CLEAR: CommandNeeds((_U,), _A.WRITE),
    _S.REMOVE: CommandNeeds((_U,), _A.REMOVE),
    _S.CREATE_PARTITION: CommandNeeds((_P,), _A.CREATE),
    _S.REMOVE_PARTITION: CommandNeeds((_P,), _A.REMOVE),
    _S.GET_ATTRIBUTES: CommandNeeds((_R, _P, _C, _U), _A.GET_ATTR),
    _S.SET_ATTRIBUTES: CommandNeeds((_R, _P, _C, _U), _A.SET_ATTR),
    _S.CREATE_AND_WRITE: CommandNeeds((_U,), _A.CREATE | _A.WRITE),
    _S.COPY_USER_OBJECTS: CommandNeeds((_U,), _A.CREATE | _A.READ | _A.WRITE),
    _S.CREATE_USER_TRACKING_COLLECTION: CommandNeeds((_C,), _A.CREATE | _A.READ | _A.WRITE),
    _S.CREATE_COLLECTION: CommandNeeds((_C,), _A.CREATE),
    _S.REMOVE_COLLECTION: CommandNeeds((_C,), _A.REMOVE),
    _S.LIST_COLLECTION: CommandNeeds((_P, _C), _A.READ),
    _S.SET_KEY: CommandNeeds((_R, _P), _A.DEV_MGMT | _A.POL_SEC),
    _S.SET_MASTER_KEY: CommandNeeds((_R,), _A.DEV_MGMT | _A.POL_SEC | _A.GLOBAL),
    _S.FLUSH_COLLECTION: CommandNeeds((_C,), _A.OBJ_MGMT),
    _S.FLUSH_PARTITION: CommandNeeds((_P,), _A.OBJ_MGMT),
    _S.FLUSH_OSD: CommandNeeds((_R,), _A.OBJ_MGMT),
    _S.QUERY: CommandNeeds((_C,), _A.QUERY),
    _S.REMOVE_MEMBER_OBJECTS: CommandNeeds((_C,), _A.REMOVE | _A.M_OBJECT),
    _S.GET_MEMBER_ATTRIBUTES: CommandNeeds((_C,), _A.GET_ATTR | _A.M_OBJECT),
    _S.SET_MEMBER_ATTRIBUTES: CommandNeeds((_C,), _A.SET_ATTR | _A.M_OBJECT),
    _S.READ_MAP: CommandNeeds((_U,), _A.DEV_MGMT),
    _S.PERFORM_SCSI_COMMAND: CommandNeeds((_R,), _A.DEV_MGMT | _A.GLOBAL),
    _S.PERFORM_TASK_MANAGEMENT_FUNCTION: CommandNeeds((_R,), _A.DEV_MGMT | _A.GLOBAL),
    _S.EXEC: CommandNeeds((_R, _P, _C, _U), _A.FUN_EXE),
    _S.EXECUTE_FUNCTION: CommandNeeds((_R, _P, _C, _U), _A.FUN_EXE),
    _S.ACTIVATE_FUNCTION: CommandNeeds((_U,), _A.SET_ATTR | _A.FUN_EXE),
    _S.COMPARE_AND_SWAP: CommandNeeds((_U,), _A.GET_ATTR | _A.SET_ATTR),
    _S.FETCH_AND_ADD: CommandNeeds((_U,), _A.GET_ATTR | _A.SET_ATTR),
    _S.READ_NAMES: CommandNeeds((_R, _P, _C), _A.READ),
    _S.CHANGE_NAMES: CommandNeeds((_R, _P, _C), _A.CREATE | _A.WRITE | _A.REMOVE),
    _S.GENERIC_COMPARE_AND_SWAP: CommandNeeds((_U,), _A.GET_ATTR | _A.SET_ATTR),
    _S.CONDITIONAL_SET_ATTRIBUTES: CommandNeeds((_U,), _A.GET_ATTR | _A.SET_ATTR),
}


_ROWS: dict[int, CommandNeeds] = {int(action): row for action, row in COMMANDS.items()}


def needs_of(request: Request) -> tuple[Need, ...]:
    """The permissions that a request needs: first for the addressed object, then for others.

    Raises: ValueError: no such command.
    """
    row = _ROWS.get(request.service_action)
    if row is None:
        raise ValueError(f"no permissions known of {request.service_action:#x}")
    obj = ref(request.partition_id, request.object_id)
    kind = _type_of(request, row.types, obj)
    if kind is _R:
        obj = ROOT
    elif kind is _P:
        obj = ref(request.partition_id)  # what stands behind it is no object id
    elif request.service_action == _S.ACTIVATE_FUNCTION and request.bits11 & _REPLACE:
        obj = ref(
            request.partition_id
        )  # all functions: one that it does not name may lose its alias
    permissions = row.permissions
    # A union of flags costs as much as all else here: only where there is one.
    if request.attributes is not NO_ATTRIBUTES:
        permissions |= _of_attributes(request)
    if request.bits11:
        permissions |= _of_options(request)
    if request.permissions:
        permissions |= request.permissions
    first = Need(obj, kind, permissions)
    sources = () if request.attributes is NO_ATTRIBUTES else _sources(request)
    if not request.descriptors and not request.grants:
        return (first, *sources)
    return (first, *sources, *_others(request), *request.grants)


def is_of_job(request: Request) -> bool:
    """Whether it is about attributes that only the surrogates of jobs have."""
    named = [*_gets(request), *_sets(request)]
    return any(Page.JOB_STATUS <= each.page <= Page.JOB_CONTROL for each in named)


def attaches(request: Request) -> bool:
    """Whether it says what functions the data of its object pass through, or see its changes."""
    return any(each.page in _STACK_PAGES | _HOOK_PAGES for each in _sets(request))


def other_type(request: Request, need: Need) -> Need | None:
    """The same need for a collection instead of a user object, or the reverse. None if the request
    itself determines the type of its object.
    """
    row = _ROWS[request.service_action]
    if need.object_type not in (_C, _U) or not {_C, _U} <= set(row.types):
        return None
    return need._replace(object_type=_C if need.object_type is _U else _U)


def _type_of(request: Request, types: tuple[ObjectType, ...], obj: ObjectRef) -> ObjectType:
    if len(types) == 1:
        return types[0]
    if obj.partition_id == 0 and _R in types:
        return _R
    if obj.object_id == 0 or not {_C, _U} & set(types):
        return _P
    if _U not in types or obj.object_id < FIRST_ID:
        return _C
    named = [*_gets(request), *_sets(request)]
    return _C if any(_COLLECTION_PAGES <= each.page < _ROOT_PAGES for each in named) else _U


def _gets(request: Request) -> list[AttributeId]:
    attributes = request.attributes
    if isinstance(attributes, AttributeLists):
        return [*attributes.get]
    if isinstance(attributes, AttributePage) and attributes.page:
        return [AttributeId(attributes.page, 0)]
    return []


def _sets(request: Request) -> list[AttributeId]:
    return [each.id for each in _values(request)]


def _values(request: Request) -> list[AttributeValue]:
    attributes = request.attributes
    if isinstance(attributes, AttributeLists):
        return [*attributes.set]
    if isinstance(attributes, SetOne):
        return [attributes.attribute]
    return [attributes.set] if attributes.set else []


def _to_set(attribute: AttributeValue) -> Permission:
    """The permission to set it, on the object that has it."""
    if attribute.page in _SECURITY_PAGES or attribute.page in _QUOTA_PAGES:
        return _A.SET_ATTR | _A.POL_SEC
    if attribute.id == LOGICAL_LENGTH:
        return _A.SET_ATTR | _A.WRITE
    if attribute.page == Page.USER_COLLECTIONS and attribute.value:
        return _TO_JOIN
    if attribute.page in _STACK_PAGES | _HOOK_PAGES:
        return _to_attach(attribute.page)
    return _A.SET_ATTR


def _to_attach(page: int) -> Permission:
    """What is set on a collection, a partition or the root is for the data of all users there."""
    permissions = _A.SET_ATTR | _A.FUN_EXE
    if page in _HOOK_PAGES:
        permissions |= _A.READ
    if page >= _PARTITION_PAGES:
        permissions |= _A.POL_SEC
    return permissions


def _of_attributes(request: Request) -> Permission:
    """Permissions for getting and setting attributes in a command. The Current Command page needs
    none.
    """
    permissions = _A(0)
    if any(each.page != Page.CURRENT_COMMAND for each in _gets(request)):
        permissions |= _A.GET_ATTR
    for each in _values(request):
        permissions |= _to_set(each)
    return permissions


def _sources(request: Request) -> list[Need]:
    """Objects whose data an object is to show; byte 16 says that WRITEs pass into them. The same of a
    partition whose objects another one is to show, all of them; byte 8 says that clients change them.
    """
    needs = []
    for each in _values(request):
        if each.id == _SOURCE and each.value:
            permissions = _A.READ | _A.WRITE if any(each.value[16:]) else _A.READ
            needs.append(Need(ref(*struct.unpack_from(">QQ", each.value)), _U, permissions))
        if each.id == _BASE and each.value:
            permissions = _TO_CHANGE if any(each.value[8:9]) else _A.READ
            base = ref(*struct.unpack_from(">Q", each.value))
            needs += [Need(base, _P, permissions), Need(base, _U, permissions)]
    return needs


def _of_options(request: Request) -> Permission:
    """Permissions for options of byte 11."""
    action = request.service_action
    if action in (_S.LIST, _S.LIST_COLLECTION) and request.bits11 & _LIST_ATTR:
        return _A.M_OBJECT
    if action == _S.REMOVE_PARTITION and request.bits11 & _REMOVE_SCOPE:
        return _A.GBL_REM
    return _A(0)


def _others(request: Request) -> list[Need]:
    """Objects that a request names beside the one addressed."""
    action, inside = request.service_action, request.address
    if action == _S.QUERY and inside:
        return [Need(ref(request.partition_id, inside), _C, _A.WRITE)]
    if action == _S.CREATE_USER_TRACKING_COLLECTION and inside:
        return [Need(ref(request.partition_id, inside), _C, _A.READ)]
    if action != _S.COPY_USER_OBJECTS:
        return []
    sources = [each.content for each in request.descriptors if each.type == _COPY_SOURCE]
    needs = []
    for content in sources:
        partition_id, object_id, with_attributes = struct.unpack_from(">QQB", content)
        permissions = _A.READ | (_A.GET_ATTR if with_attributes else _A(0))
        needs.append(Need(ref(partition_id, object_id), _U, permissions))
    return needs
