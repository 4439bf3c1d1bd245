# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that carry another command: a SCSI command, or a task management function.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, call
from pyosd.errors import ProtocolError
from pyosd.types import ROOT, Buffer, ObjectRef, TaskManagement
from pyosd.wire.tracking import TaskManagementReply


def perform_scsi_command(
    cdb: bytes, data: Buffer = b"", data_in_length: int = 0
) -> Dialogue[memoryview]:
    """Send a SCSI command of 6 to 16 bytes inside an OSD one (PERFORM SCSI COMMAND, 8F7Ch).

    Returns: its Data-In.  Raises: OSDError: with the embedded command's sense data.
    """
    return (yield from call(requests.perform_scsi_command(cdb, data, data_in_length))).data


def perform_task_management(
    function: TaskManagement | int, task_tag: int = 0, obj: ObjectRef = ROOT
) -> Dialogue[TaskManagementReply]:
    """Manage tasks by a command (PERFORM TASK MANAGEMENT FUNCTION, 8F7Dh)."""
    request = requests.perform_task_management(function, task_tag, obj)
    try:
        return TaskManagementReply.decode((yield from call(request)).data)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
