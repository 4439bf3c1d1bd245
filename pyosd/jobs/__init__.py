# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: submit code that runs beside the data, follow it, fetch its result.

A name is imported when it is first used: files of this folder are used alone, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyosd.jobs.job_array import submit_job as submit
    from pyosd.jobs.listed import partitions_with_jobs
    from pyosd.jobs.submission import Submission, list_jobs

__all__ = ["Submission", "list_jobs", "partitions_with_jobs", "submit"]


def __getattr__(name: str) -> Any:
    """Import a name on its first use."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    if name == "submit":
        from pyosd.jobs.job_array import submit_job

        return submit_job
    if name == "partitions_with_jobs":
        from pyosd.jobs.listed import partitions_with_jobs

        return partitions_with_jobs
    from pyosd.jobs import submission

    return getattr(submission, name)
