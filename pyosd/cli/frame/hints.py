# SPDX-License-Identifier: GPL-2.0-or-later
"""Remedies for refusals by the target, in a line below the error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyosd import errors
from pyosd.wire.attributes import LOGICAL_LENGTH

__all__ = ["hints"]

# Sense codes of functions that failed, of stages and of hooks.
CHECKED = (0x80, 0x2E)
FUNCTION_FAILED = {(0x80, 0x2D), CHECKED}
KEY = "another script, zone or argument was submitted with this key: choose another key"
ENGINE = "'osd fn engines' lists the engines of the target, 'osd pool show NAME' that of a pool"
SIGNATURE = "'osd fn put --sign KEY' signs it; the administrator lists the key (function_signers)"
SIGNER = (
    "the administrator lists the key in the file of function_signers, and reloads the configuration"
)
EXPIRED_FIELD = 84  # the byte of the CDB at fault: when the capability expires
EXPIRED = (
    "'osd cred get' asks for a new credential; if this one is new, compare the clocks of the target "
    "and of the host that made it"
)
IDS = re.compile(r"'/(0x[0-9a-fA-F]+/0x[0-9a-fA-F]+)'")
OTHER_TYPE = (128, 135)  # the bytes of the CDB at fault when the capability is for another type
KINDS = (
    "'osd obj' is for user objects, 'osd col' for collections, and 'osd cp -r' copies directories"
)
SPACE = "'osd target df --partitions' shows the space and the quotas"
LOST = (
    "a tgtd without a target does this, too; on its host: the log of 'osd target serve', or "
    "'systemctl status tgt iosd-attach'"
)
REMEDIES = {
    (0x55, 0x07): SPACE,
    (0x80, 0x12): KEY,
    (0x80, 0x18): ENGINE,
    (0x80, 0x20): SIGNATURE,
    (0x80, 0x22): SIGNER,
}


def hints(error: BaseException) -> Iterator[str]:
    """The lines for an exception."""
    if not isinstance(error, errors.OSDError):
        return
    if type(error) is errors.SessionLost:
        yield LOST
    code = (error.asc, error.ascq)
    if code in REMEDIES:
        yield REMEDIES[code]
    if isinstance(error, errors.PermissionDenied) and error.field_pointer == EXPIRED_FIELD:
        yield EXPIRED
    if isinstance(error, errors.PermissionDenied) and error.field_pointer in OTHER_TYPE:
        yield KINDS
    if code in FUNCTION_FAILED:
        yield from function_failure(error)
    if isinstance(error, errors.NoSuchName) and (ids := IDS.match(error.text)):
        yield f"an object without a name has verbs of its own, such as 'osd obj read {ids[1]}'"
    if isinstance(error, errors.Invalid) and code == (0x26, 0x00):
        yield from page_hint(error)


def page_hint(error: errors.OSDError) -> Iterator[str]:
    """If an attribute was refused that an application may have meant as its own: their pages."""
    if LOGICAL_LENGTH in error.attributes:  # a verb has asked for the length of its object
        yield KINDS
    elif any(each.page % 0x30000000 < 0x20000000 for each in error.attributes):
        yield (
            "attributes of your own: user objects 0x10000/1, partitions 0x30010000/1, collections "
            "0x60010000/1, the root 0x90010000/1, and the pages and numbers that follow"
        )


def function_failure(error: errors.OSDError) -> Iterator[str]:
    """If functions of an object or a hook have failed: the reason, and the verb that shows more."""
    from pyosd.jobs.reasons import REASONS

    number = error.sense.command_information if error.sense else None
    if number in REASONS:
        yield f"reason {number}: {REASONS[number].label}"
    if number is None and (error.asc, error.ascq) == CHECKED:
        yield "checks cannot be asked about changes by paths or scripts: use the object's id (osd obj rm)"
    if number:
        yield "'osd why ADDRESS' has the functions of an object, 'osd fn log NAME' the traceback"
