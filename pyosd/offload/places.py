# SPDX-License-Identifier: GPL-2.0-or-later
"""run() and run_array() of Target: scripts that run near the data or at the client.

Not here: the choice (where.py), which is imported when a script is first run so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, get_args

from pyosd.jobs.source import Code
from pyosd.jobs.submission import Submission, prepare
from pyosd.offload.session import ScriptSession
from pyosd.types import ObjectRef

if TYPE_CHECKING:
    from pyosd.offload.home import Outcome
    from pyosd.offload.where import Where

__all__ = ["ScriptPlaces"]


class ScriptPlaces(ScriptSession):
    """A session that runs scripts near the data or at the client."""

    def run(
        self,
        code: Code,
        *,
        zone: ObjectRef,
        where: Where | None = None,
        pure: bool = False,
        timeout: float | None = None,
        **options: Unpack[Submission],
    ) -> Outcome:
        """Run code near the data or here, and wait for its end.

        Args:
            code, zone, options: as for exec().
            where: "near" the data; "local", here, in a process of its own with the rights of this
                session; "auto": where it is expected to end sooner.  None: "auto" if pure, else "near".
                A session with chap or credentials of its own has no scripts here, and "auto" is "near".
            pure: the code reads its zone and returns a result.  Wherever it runs, it may change no
                objects.  where="auto" implies that.
            timeout: seconds.

        Returns: its output and result, the same from both places, and why it ran there.
        Raises: TimeoutError: it continues near the data, or was ended here.  ValueError: an array; or
            a run here with arguments of bytes, or over a session as above.  Otherwise as exec() and
            Job.result(), but a script that raised has an exit code instead.
        """
        from pyosd.offload.where import Placement, Where

        prepared = prepare(code, zone=zone, **options)
        if prepared.params.array is not None:
            raise ValueError("an array has many outcomes: run_array()")
        where = where or ("auto" if pure else "near")
        if where not in get_args(Where):
            raise ValueError(f"where is one of {', '.join(get_args(Where))}, not {where!r}")
        place = Placement(self, self.costs, prepared, pure or where == "auto")
        if where == "auto":
            return place.auto(timeout)
        return place.near(timeout) if where == "near" else place.at_home(None, timeout, "")

    def run_array(
        self,
        code: Code,
        *,
        zone: ObjectRef,
        timeout: float | None = None,
        **options: Unpack[Submission],
    ) -> list[Outcome]:
        """Run code that changes no objects once for each index, and wait for all ends.

        Members run near the data, and meanwhile here, one after the other, those that the target
        expects to end sooner here.

        Args: as run(); array or over is required.
        Returns: the outcomes in order of index.
        Raises: as run(); then the array is killed.
        """
        from pyosd.offload.where import Placement

        prepared = prepare(code, zone=zone, **options)
        found = dict(Placement(self, self.costs, prepared, True).members(timeout))
        return [found[index] for index in sorted(found)]
