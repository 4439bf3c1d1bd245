# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods of Job, JobArray, AsyncJob and AsyncJobArray, written once as dialogues."""
