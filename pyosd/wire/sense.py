# SPDX-License-Identifier: GPL-2.0-or-later
"""Descriptor-format sense data: bytes to Sense, Sense to the exception it means.

Source: osd2-wire section 7; vendor codes 80/xx: docs/sense.md.
"""

from __future__ import annotations

from dataclasses import replace

from pyosd.errors import (
    ChangeRefused,
    Conflict,
    Exists,
    FunctionInUse,
    Invalid,
    IsADirectory,
    NameChanged,
    NameExists,
    NoSpace,
    NoSuchName,
    NotADirectory,
    NotEmpty,
    NotFound,
    OSDError,
    PermissionDenied,
    PushedBack,
    StorageError,
    TargetBusy,
    TaskAborted,
    TooLate,
    VersionMismatch,
)
from pyosd.types import ROOT, AttributeId, Sense, ref

GOOD = 0x00
CHECK_CONDITION = 0x02
BUSY = 0x08
TASK_SET_FULL = 0x28
TASK_ABORTED = 0x40

NO_SENSE = 0x0
RECOVERED_ERROR = 0x1
NOT_READY = 0x2
MEDIUM_ERROR = 0x3
HARDWARE_ERROR = 0x4
ILLEGAL_REQUEST = 0x5
UNIT_ATTENTION = 0x6
DATA_PROTECT = 0x7
ABORTED_COMMAND = 0xB
MISCOMPARE = 0xE

READ_PAST_END = (0x3B, 0x17)
STILL_RUNNING = (0x80, 0x10)
_ANOTHER_VERSION = (0x1D, 0x00)

_TEXTS = {
    (0x00, 0x00): "no further information",
    (0x04, 0x04): "format in progress",
    (0x11, 0x00): "the backing device failed to read or write",
    (0x1A, 0x00): "parameter list length error",
    (0x1D, 0x00): "the data have another version than the command wants",
    (0x20, 0x00): "operation code or CDB length is not OSD-2",
    (0x24, 0x00): "invalid field in CDB",
    (0x24, 0x04): "audit value frozen",
    (0x24, 0x05): "working key frozen",
    (0x24, 0x06): "nonce not unique",
    (0x24, 0x07): "nonce timestamp out of range",
    (0x25, 0x00): "logical unit not supported",
    (0x26, 0x00): "invalid field in parameter list",
    (0x26, 0x0F): "invalid data-out buffer integrity check value",
    (0x29, 0x00): "power on or reset",
    (0x2C, 0x00): "command sequence error",
    (0x2C, 0x0A): "partition or collection contains user objects",
    (0x3A, 0x00): "the device with the object's first bytes is absent",
    (0x3B, 0x17): "read past the end of the object",
    (0x44, 0x00): "internal failure of the target; the cause is in its log",
    (0x55, 0x00): "the target is out of memory or another resource",
    (0x55, 0x07): "quota exceeded or no space left",
    (0x80, 0x01): "job ended: queue or hold",
    (0x80, 0x02): "job ended: script",
    (0x80, 0x03): "job ended: limit",
    (0x80, 0x04): "job ended: sandbox or host",
    (0x80, 0x05): "job ended: storage",
    (0x80, 0x06): "job ended: security",
    (0x80, 0x09): "job ended: internal failure",
    (0x80, 0x0A): "the target expects that the client runs the job sooner itself",
    (0x80, 0x0B): "the pool's deadline would pass before the job ended",
    (0x80, 0x10): "the wait ended before the job; the job continues",
    (0x80, 0x11): "an unfinished job stands in the way; cancel or kill it first",
    (0x80, 0x12): "idempotency key in use with other content",
    (0x80, 0x13): "isolation level not available on the target's host",
    (0x80, 0x14): "not possible in this state of the job",
    (0x80, 0x15): "byte-code is not allowed on this target; send the source instead",
    (0x80, 0x17): "the function is not active, or its code has changed since it was activated",
    (0x80, 0x18): "the target does not have the engine that the function names",
    (0x80, 0x2C): "the contract of the functions does not permit this",
    (0x80, 0x2D): "a function that the data pass through failed",
    (0x80, 0x2E): "functions check changes of the object, and cannot be asked about this command",
    (0x80, 0x2F): "the code cannot be compiled",
    (0x80, 0x1A): "another active function of the partition has the alias",
    (
        0x80,
        0x20,
    ): "a signature is required: the policy says so, or the engine runs signed functions only",
    (0x80, 0x21): "the signature is damaged, or of other code or another manifest",
    (0x80, 0x22): "the signer is not listed, not for this engine, or not at this time",
    (0x80, 0x23): "the code is damaged, or encrypted to the key of another target",
    (0x80, 0x29): "the function is more than its signer may sign, or the zone is not the signer's",
    (0x80, 0x28): "calls of the function are under way; wait, end them, or deactivate it first",
    (0x80, 0x30): "the directory has no such name",
    (0x80, 0x31): "the directory has this name already",
    (0x80, 0x32): "a name of the path is no directory",
    (0x80, 0x33): "the name is a directory's",
    (0x80, 0x34): "a directory cannot move below itself",
    (0x80, 0x35): "the name belongs to another object than the command wants",
    (0x80, 0x36): "this object cannot have the name",
    (0x80, 0x19): "no active function of this partition has this name",
    (
        0x80,
        0x16,
    ): "the pool is not for users of this address or name; its administrator decides who can use it",
}
_SENSE_KEYS = {
    0x0: "no sense",
    0x1: "recovered error",
    0x2: "not ready",
    0x3: "medium error",
    0x4: "hardware error",
    0x5: "illegal request",
    0x6: "unit attention",
    0x7: "data protect",
    0xB: "aborted command",
    0xE: "miscompare",
}
_NOT_EMPTY = (0x2C, 0x0A)
_CONFLICTS = {(0x2C, 0x00), (0x80, 0x11), (0x80, 0x12), (0x80, 0x14), (0x80, 0x1A)}
_BY_KEY = {0x3: StorageError, 0x4: StorageError, 0x5: Invalid}
_SECURITY = {(0x24, 0x04), (0x24, 0x05), (0x24, 0x06), (0x24, 0x07), (0x26, 0x0F), (0x80, 0x16)}
_FIELD_PARTITION, _FIELD_OBJECT, _FIELD_GET_LIST = 16, 24, 52
_CAPABILITY_FIELDS = range(80, 184)
_CAPABILITY_TEXTS = {
    80: "the capability or its proof is not valid",
    82: "the security method is weaker than the target requires",
    84: "the capability has expired",
    122: "the capability is for an object that is there no more",
    128: "the capability is for another type of object",
    129: "the capability lacks a permission",
    135: "the capability is for another type of object",
    140: "the capability was revoked",
    144: "the capability is from before the target was started",
    152: "the capability is for another partition",
    160: "the capability is for another object",
    168: "the capability is for another range",
    176: "the capability is for another range",
}
UNFINISHED_JOB = (0x80, 0x11)
CONTRACT, STAGE = (0x80, 0x2C), (0x80, 0x2D)
_CHECK, _NO_CODE = (0x80, 0x2E), (0x80, 0x2F)
_CONTRACTS = {
    1: "a function has no contract, or no such entry point",
    2: "a function needs all of its input at once, and it is longer than 16 MiB: declare records",
    3: "only READ and WRITE pass through functions",
    4: "a function has no inverse, so the data can only be read",
    5: "a scattered WRITE does not pass through functions",
    6: "the object whose data it shows was removed",
    7: "the view is read-only, or its base was removed",
    8: "a line is longer than 4 MiB, so it is no record that functions can get",
    9: "the result must be kept: declare the functions deterministic, select less, or give the target "
    "more kept_results",
    10: "the view is read-only: its names are those of its base",
    11: "the attributes of a directory of a view cannot be set",
}
_NO_FUNCTION = (0x80, 0x19)
_PUSHED_BACK = (0x80, 0x0A)
_TOO_LATE = (0x80, 0x0B)
_FUNCTION_IN_USE = (0x80, 0x28)
_OF_NAMES: dict[tuple[int, int], type[OSDError]] = {
    (0x80, 0x30): NoSuchName,
    (0x80, 0x31): NameExists,
    (0x80, 0x32): NotADirectory,
    (0x80, 0x33): IsADirectory,
    (0x80, 0x35): NameChanged,
}
_ATTRIBUTE_TEXT = "read only, of another type of object, or not a value for this attribute"
_GROUP_TEXT = (
    "the attributes of one object exceed 65,528 bytes, what one command for many objects returns of "
    "each: request fewer attributes"
)
_OF_MANY = {0x8882, 0x8883, 0x8897, 0x88A2}  # commands that return attributes of many objects
FIRST_ID = 0x10000  # of partitions and of what is in them
# CDB byte of the *requested* id of a creating command. A field pointer to it means that the id is
# in use.
_REQUESTED_ID_FIELD = {
    0x8882: _FIELD_OBJECT,
    0x888B: _FIELD_PARTITION,
    0x8892: _FIELD_OBJECT,
    0x8893: _FIELD_OBJECT,
    0x8894: _FIELD_OBJECT,
    0x8895: _FIELD_OBJECT,
}


def decode(data: bytes) -> Sense | None:
    """Decode sense data; None when it is absent or of an unknown format.

    OSD uses the descriptor format; of the fixed format (other device types of the same target) only
    the code is taken.  A descriptor that runs past the end is dropped with all that follows; never
    raises.
    """
    if len(data) >= 14 and data[0] & 0x7F in (0x70, 0x71):
        return Sense(data[2] & 0x0F, data[12], data[13], deferred=data[0] & 0x7F == 0x71)
    if len(data) < 8 or data[0] & 0x7F not in (0x72, 0x73):
        return None
    sense = Sense(data[1] & 0x0F, data[2], data[3], deferred=data[0] & 0x7F == 0x73)
    end = min(len(data), 8 + data[7])
    at = 8
    while at + 2 <= end and at + 2 + data[at + 1] <= end:
        sense = _descriptor(sense, data[at], data[at : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
    return sense


def is_unit_attention(sam_status: int, sense: bytes) -> bool:
    """Whether a command was not executed because the unit had news to tell first."""
    found = decode(sense) if sam_status == CHECK_CONDITION else None
    return found is not None and found.sense_key == UNIT_ATTENTION


def _be(data: bytes, start: int, width: int) -> int:
    return int.from_bytes(data[start : start + width], "big")


def _descriptor(sense: Sense, kind: int, body: bytes) -> Sense:
    """Add one descriptor, its two header bytes included, to what is known."""
    length = len(body)
    if kind == 0x00 and length >= 12:
        return replace(sense, information=_be(body, 4, 8))
    if kind == 0x01 and length >= 12:
        return replace(sense, command_information=_be(body, 4, 8))
    if kind == 0x02 and length >= 8 and body[4] & 0x80:
        in_data_out = not body[4] & 0x40
        return replace(sense, field_pointer=_be(body, 5, 2), field_in_data_out=in_data_out)
    if kind == 0x06 and length >= 32:
        return replace(
            sense,
            not_initiated=_be(body, 8, 4),
            completed=_be(body, 12, 4),
            named_object=ref(_be(body, 16, 8), _be(body, 24, 8)),
        )
    if kind == 0x07 and length >= 34:
        return replace(sense, response_integrity_check_value=body[2:34])
    if kind == 0x08:
        ids = [
            AttributeId(_be(body, at, 4), _be(body, at + 4, 4)) for at in range(4, length - 7, 8)
        ]
        return replace(sense, attributes=sense.attributes + tuple(ids))
    if kind == 0x80:
        return replace(sense, text=body[2:].decode(errors="replace"))
    return sense


def describe(sense: Sense) -> str:
    """One line: the code's meaning and what the descriptors point at."""
    code = (sense.asc, sense.ascq)
    key = _SENSE_KEYS.get(sense.sense_key, f"sense key {sense.sense_key:X}h")
    text = _TEXTS.get(code, key)
    if code == (0x24, 0x00) and not sense.field_in_data_out:
        text = _CAPABILITY_TEXTS.get(sense.field_pointer or 0, text)
    if code == (0x26, 0x00) and sense.attributes:
        text = _ATTRIBUTE_TEXT
    if code == _CHECK and sense.command_information is not None:
        failed = "a function that checks changes failed"
        said = failed if sense.command_information else "a function does not permit this"
        text = sense.text if sense.text and not sense.command_information else said
        if sense.text and sense.command_information:
            text += f": {sense.text}"
    if code == _NO_CODE and sense.text:
        text += f": {sense.text}"
    details = [f"{sense.sense_key:X}h {sense.asc:02X}/{sense.ascq:02X}"]
    if sense.field_pointer is not None:
        where = "Data-Out" if sense.field_in_data_out else "CDB"
        details.append(f"{where} byte {sense.field_pointer}")
    if sense.sense_key in (MEDIUM_ERROR, HARDWARE_ERROR) and sense.information is not None:
        details.append(f"from byte {sense.information} of the object on")
    if code == CONTRACT and sense.command_information in _CONTRACTS:
        details.append(_CONTRACTS[sense.command_information])
    if code in (_CHECK, _NO_CODE) and sense.command_information:
        details.append(f"reason {sense.command_information}")
    if code == _CHECK and sense.information is not None:
        details.append(f"token {sense.information} in the log")
    if code == STAGE:
        details.append(f"reason {sense.command_information}; token {sense.information} in the log")
    if code == UNFINISHED_JOB and sense.information is not None and sense.named_object is not None:
        details.append(f"job {ref(sense.named_object.partition_id, sense.information)}")
    if code == _FUNCTION_IN_USE and sense.information and sense.command_information:
        details.append(f"job {ref(sense.command_information, sense.information)}")
    if sense.named_object is not None:
        details.append(f"object {sense.named_object}")
    if sense.attributes:
        details.append("attribute " + ", ".join(map(str, sense.attributes)))
    return f"{text} ({'; '.join(details)})"


def error_for(
    sam_status: int, sense: Sense | None, service_action: int = 0, hint: str = ""
) -> OSDError | None:
    """The exception an answer means, or None for success.

    Sense key RECOVERED ERROR (and NO SENSE) is success, as Linux has it: data and attributes are
    there.  service_action: of the command, 0 for others; tells "absent" from "taken".  hint: ends
    the text of an invalid field of the CDB.
    """
    if sam_status == GOOD:
        return None
    if sam_status in (BUSY, TASK_SET_FULL):
        text = "the target is busy" if sam_status == BUSY else "the target's task set is full"
        return _make(TargetBusy, sam_status, sense, text)
    if sam_status == TASK_ABORTED:
        return _make(TaskAborted, sam_status, sense, "the command was aborted")
    if sam_status != CHECK_CONDITION or sense is None:
        text = f"SAM status {sam_status:02X}h without usable sense data"
        return _make(OSDError, sam_status, sense, text)
    if sense.sense_key in (NO_SENSE, RECOVERED_ERROR):
        return None
    kind = _kind(sense, service_action)
    text = describe(sense)
    if service_action in _OF_MANY and sense.field_pointer == _FIELD_GET_LIST and sense.attributes:
        text = f"{_GROUP_TEXT} ({text})"
    if kind is Exists:
        text = f"{_refused_id(sense)} ({text})"
    elif (sense.asc, sense.ascq) in _OF_NAMES:
        text = f"name {(sense.information or 0) + 1} of the path: {text}"
    elif kind is NotFound and (sense.asc, sense.ascq) != _NO_FUNCTION:
        text = f"{sense.named_object or 'the object'} does not exist ({text})"
    elif kind is Invalid and (sense.asc, sense.ascq) == (0x24, 0x00):
        text += hint
    return _make(kind, sam_status, sense, text)


def _refused_id(sense: Sense) -> str:
    """Why an id that was asked for is none to have."""
    named = sense.named_object or ROOT
    asked = named.partition_id if sense.field_pointer == _FIELD_PARTITION else named.object_id
    if sense.field_pointer == _FIELD_OBJECT and 0 < asked < FIRST_ID:
        return f"ids below {FIRST_ID:#x} are reserved"
    return "requested id is taken"


def _make(kind: type[OSDError], sam_status: int, sense: Sense | None, text: str) -> OSDError:
    key, asc, ascq = (sense.sense_key, sense.asc, sense.ascq) if sense else (0, 0, 0)
    return kind(key, asc, ascq, text, sense=sense, sam_status=sam_status)


def _kind(sense: Sense, service_action: int) -> type[OSDError]:
    code = (sense.asc, sense.ascq)
    if code == (0x55, 0x07):
        return NoSpace
    if code == _NOT_EMPTY:
        return NotEmpty
    if code == _ANOTHER_VERSION:
        return VersionMismatch
    if code in _CONFLICTS:
        return Conflict
    if code in _SECURITY:
        return PermissionDenied
    if code == _NO_FUNCTION:
        return NotFound
    if code == _FUNCTION_IN_USE:
        return FunctionInUse
    if code == _CHECK:
        return ChangeRefused
    if code == _PUSHED_BACK:
        return PushedBack
    if code == _TOO_LATE:
        return TooLate
    if code in _OF_NAMES:
        return _OF_NAMES[code]
    if code != (0x24, 0x00) or sense.field_in_data_out:
        return _BY_KEY.get(sense.sense_key, OSDError)
    if sense.field_pointer in _CAPABILITY_FIELDS:
        return PermissionDenied
    if sense.field_pointer in (_FIELD_PARTITION, _FIELD_OBJECT):
        taken = _REQUESTED_ID_FIELD.get(service_action) == sense.field_pointer
        return Exists if taken else NotFound
    return Invalid
