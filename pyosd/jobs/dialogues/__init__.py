# SPDX-License-Identifier: GPL-2.0-or-later
"""What Job, JobArray, AsyncJob and AsyncJobArray do, written once as dialogues."""
