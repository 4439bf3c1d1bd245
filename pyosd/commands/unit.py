# SPDX-License-Identifier: GPL-2.0-or-later
"""The OSD-2 commands to one logical unit, as methods: Commands, for threads over any Transport.

Lives here: the table of methods, which AsyncCommands (async_unit.py) has too.  Each is a dialogue of
another file of this folder, so both classes have the same names, parameters and meanings.
From caller.py and async_unit.py: call(), for what a method does not say (attributes retrieved with
a WRITE, say), and execute(), for CDBs of one's own.
Not here: bytes (wire/), requests (requests/), sessions (target.py, aio.py), jobs (jobs/).

Every method that sends a command raises, beside what it says itself:
    OSDError or a child: the target refused or failed it; unless said otherwise nothing was changed.
    SessionLost, Unreachable: no answer came; whether it acted is unknown.
    ValueError: an argument does not fit its field; TypeError: it has the wrong type.  Nothing was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyosd.commands.caller import Caller
from pyosd.commands.dialogue import DialoguesOf, Method, OwnMethod, StreamMethod

if TYPE_CHECKING:
    from pyosd.commands import (
        attributes,
        collections,
        data,
        execute,
        keys,
        names,
        objects,
        perform,
        pool_status,
    )
    from pyosd.commands import copy as copying
else:
    attributes = DialoguesOf("pyosd.commands.attributes")
    collections = DialoguesOf("pyosd.commands.collections")
    copying = DialoguesOf("pyosd.commands.copy")
    data = DialoguesOf("pyosd.commands.data")
    execute = DialoguesOf("pyosd.commands.execute")
    keys = DialoguesOf("pyosd.commands.keys")
    names = DialoguesOf("pyosd.commands.names")
    objects = DialoguesOf("pyosd.commands.objects")
    perform = DialoguesOf("pyosd.commands.perform")
    pool_status = DialoguesOf("pyosd.commands.pool_status")

__all__ = ["CommandTable", "Commands"]


class CommandTable:
    """The methods that Commands and AsyncCommands share."""

    # SPC commands
    test_unit_ready = Method(objects.test_unit_ready)
    inquiry = Method(objects.inquiry)

    # partitions and user objects
    format_osd = Method(objects.format_osd)
    create_partition = Method(objects.create_partition)
    remove_partition = Method(objects.remove_partition)
    create = Method(objects.create)
    create_many = Method(objects.create_many)
    create_and_write = Method(objects.create_and_write)
    remove = Method(objects.remove)
    flush = Method(objects.flush)
    flush_collection = Method(objects.flush_collection)
    flush_partition = Method(objects.flush_partition)
    flush_osd = Method(objects.flush_osd)

    # data, one command each
    read = Method(data.read)
    read_with_version = Method(data.read_with_version)
    write = Method(data.write)
    append = Method(data.append)
    clear = Method(data.clear)
    punch = Method(data.punch)
    read_pieces = Method(data.read_pieces)
    write_pieces = Method(data.write_pieces)
    data_version = Method(data.data_version)
    members_version = Method(data.members_version)

    # data of any length, several commands
    length = Method(data.length)
    known_length = Method(data.known_length)
    iter_read = StreamMethod(data.iter_read)
    read_range = Method(data.read_range)
    read_into = Method(data.read_into)
    write_range = Method(data.write_range)
    write_from = Method(data.write_from)

    # attributes
    get_attributes = Method(attributes.get_attributes)
    get_attribute = Method(attributes.get_attribute)
    set_attributes = Method(attributes.set_attributes)
    get_page = Method(attributes.get_page)
    compare_and_swap = Method(attributes.compare_and_swap)
    fetch_and_add = Method(attributes.fetch_and_add)
    swap_attribute = Method(attributes.swap_attribute)

    # collections and lists
    create_collection = Method(collections.create_collection)
    remove_collection = Method(collections.remove_collection)
    create_tracking_collection = Method(collections.create_tracking_collection)
    remove_member_objects = Method(collections.remove_member_objects)
    tracking = Method(collections.tracking)
    list_page = Method(collections.list_page)
    list_partitions = Method(collections.list_partitions)
    list_objects = Method(collections.list_objects)
    list_attributes = StreamMethod(collections.list_attributes)
    list_collections = Method(collections.list_collections)
    list_members = Method(collections.list_members)
    get_member_attributes = Method(collections.get_member_attributes)
    set_member_attributes = Method(collections.set_member_attributes)

    memberships = Method(collections.memberships)
    add_member = Method(collections.add_member)
    remove_member = Method(collections.remove_member)

    # queries
    query = Method(collections.query)
    query_ids = Method(collections.query_ids)
    query_into = Method(collections.query_into)

    # copies and maps
    copy = Method(copying.copy)
    iter_map = StreamMethod(copying.iter_map)
    read_map = Method(copying.read_map)
    object_structure_check = Method(copying.object_structure_check)

    # commands that carry another command
    perform_scsi_command = Method(perform.perform_scsi_command)
    perform_task_management = Method(perform.perform_task_management)

    # keys
    set_key = Method(keys.set_key)
    set_master_key_seed = Method(keys.set_master_key_seed)
    set_master_key_change = Method(keys.set_master_key_change)

    # jobs; pyosd.jobs makes more of them
    pools = Method(pool_status.pools)
    exec_code = Method(execute.exec_code)
    poll_job = OwnMethod(execute.poll_job)

    # names
    lookup = Method(names.lookup)
    list_names = Method(names.list_names)
    lookup_data = Method(names.lookup_data)
    create_name = Method(names.create_name)
    put_name = Method(names.put_name)
    make_directory = Method(names.make_directory)
    link = Method(names.link)
    unlink = Method(names.unlink)
    remove_directory = Method(names.remove_directory)
    rename = Method(names.rename)

    # functions
    activate_function = Method(execute.activate_function)
    call_function = Method(execute.call_function)


class Commands(CommandTable, Caller):
    """OSD-2 commands to one logical unit, for threads."""
