# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs of ``osd`` about jobs."""
