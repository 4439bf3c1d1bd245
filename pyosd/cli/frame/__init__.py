# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of all verbs of ``osd``: options, parameters, output, exit codes, groups."""
