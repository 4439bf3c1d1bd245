# SPDX-License-Identifier: GPL-2.0-or-later
"""One function per OSD-2 command: its own field names in, a Request out.  Pure.

Every function takes `attributes` (lists to get and set, a page, or one attribute to set) and
`options`.
Raises: ValueError, at encode(), for numbers that do not fit their field.  The target checks the rest.
A name is imported when it is first used: a program needs few commands.
Source: osd2-wire section 3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyosd.osd._query import Criterion
    from pyosd.requests.atomics import (
        compare_and_swap,
        conditional_set_attributes,
        fetch_and_add,
        generic_compare_and_swap,
    )
    from pyosd.requests.base import Extra
    from pyosd.requests.collections import (
        create_collection,
        create_user_tracking_collection,
        get_member_attributes,
        list_collection,
        list_objects,
        query,
        query_into,
        remove_collection,
        remove_member_objects,
        set_member_attributes,
    )
    from pyosd.requests.copy import copy_user_object, object_structure_check
    from pyosd.requests.executing import activate_function, execute, execute_function
    from pyosd.requests.keys import set_key, set_master_key_change, set_master_key_seed
    from pyosd.requests.naming import names
    from pyosd.requests.objects import (
        FLUSH_EVERYTHING,
        append,
        clear,
        create,
        create_and_write,
        create_partition,
        flush,
        flush_collection,
        flush_osd,
        flush_partition,
        format_osd,
        get_attributes,
        punch,
        read,
        read_map,
        read_pieces,
        remove,
        remove_partition,
        set_attributes,
        write,
        write_pieces,
    )
    from pyosd.requests.perform import perform_scsi_command, perform_task_management

__all__ = [
    "FLUSH_EVERYTHING",
    "Criterion",
    "Extra",
    "activate_function",
    "append",
    "clear",
    "compare_and_swap",
    "conditional_set_attributes",
    "copy_user_object",
    "create",
    "create_and_write",
    "create_collection",
    "create_partition",
    "create_user_tracking_collection",
    "execute",
    "execute_function",
    "fetch_and_add",
    "flush",
    "flush_collection",
    "flush_osd",
    "flush_partition",
    "format_osd",
    "generic_compare_and_swap",
    "get_attributes",
    "get_member_attributes",
    "list_collection",
    "list_objects",
    "names",
    "object_structure_check",
    "perform_scsi_command",
    "perform_task_management",
    "punch",
    "query",
    "query_into",
    "read",
    "read_map",
    "read_pieces",
    "remove",
    "remove_collection",
    "remove_member_objects",
    "remove_partition",
    "set_attributes",
    "set_key",
    "set_master_key_change",
    "set_master_key_seed",
    "set_member_attributes",
    "write",
    "write_pieces",
]

# The module of each name; a test compares it with the imports above.
MODULES = {
    name: module
    for module, names in {
        "pyosd.osd._query": ("Criterion",),
        "pyosd.requests.atomics": (
            "compare_and_swap",
            "conditional_set_attributes",
            "fetch_and_add",
            "generic_compare_and_swap",
        ),
        "pyosd.requests.base": ("Extra",),
        "pyosd.requests.collections": (
            "create_collection",
            "create_user_tracking_collection",
            "get_member_attributes",
            "list_collection",
            "list_objects",
            "query",
            "query_into",
            "remove_collection",
            "remove_member_objects",
            "set_member_attributes",
        ),
        "pyosd.requests.copy": (
            "copy_user_object",
            "object_structure_check",
        ),
        "pyosd.requests.executing": (
            "activate_function",
            "execute",
            "execute_function",
        ),
        "pyosd.requests.keys": (
            "set_key",
            "set_master_key_change",
            "set_master_key_seed",
        ),
        "pyosd.requests.naming": ("names",),
        "pyosd.requests.objects": (
            "FLUSH_EVERYTHING",
            "append",
            "clear",
            "create",
            "create_and_write",
            "create_partition",
            "flush",
            "flush_collection",
            "flush_osd",
            "flush_partition",
            "format_osd",
            "get_attributes",
            "punch",
            "read",
            "read_map",
            "read_pieces",
            "remove",
            "remove_partition",
            "set_attributes",
            "write",
            "write_pieces",
        ),
        "pyosd.requests.perform": (
            "perform_scsi_command",
            "perform_task_management",
        ),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Import a name on its first use."""
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    value = getattr(import_module(MODULES[name]), name)
    globals()[name] = value
    return value
