# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of methods that Job and AsyncJob share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyosd.commands.dialogue import DialoguesOf, OwnMethod, OwnStreamMethod
from pyosd.jobs.dialogues import following

if TYPE_CHECKING:
    from pyosd.jobs.dialogues import origins
else:
    origins = DialoguesOf("pyosd.jobs.dialogues.origins")

__all__ = ["JobTable"]


class JobTable:
    """The methods that Job and AsyncJob share.

    A Future defines done(), running(), cancelled(), cancel(), result() and exception(): Job spells
    them, and so does AsyncJob.
    """

    status = OwnMethod(following.status)
    poll = OwnMethod(following.poll)
    progress = OwnMethod(following.progress)
    wait = OwnMethod(following.wait)
    traceback = OwnMethod(following.traceback)
    usage = OwnMethod(following.usage)
    used = OwnMethod(origins.used)
    inputs = OwnMethod(origins.inputs)
    outputs = OwnMethod(origins.outputs)
    changed_inputs = OwnMethod(origins.changed_inputs)
    provenance = OwnMethod(origins.provenance)
    iter_output = OwnStreamMethod(following.iter_output)
    output = OwnMethod(following.output)
    stderr = OwnMethod(following.stderr)
    iter_stderr = OwnStreamMethod(following.iter_stderr)
    logs = OwnStreamMethod(following.logs)
    kill = OwnMethod(following.kill)
    hold = OwnMethod(following.hold)
    release = OwnMethod(following.release)
    remove = OwnMethod(following.remove)
    _control = OwnMethod(following.control)
