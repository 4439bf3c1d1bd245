# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: submit code that runs beside the data, follow it, fetch its result."""

from pyosd.jobs.job_array import submit_job as submit
from pyosd.jobs.submission import Submission, list_jobs, partitions_with_jobs

__all__ = ["Submission", "list_jobs", "partitions_with_jobs", "submit"]
