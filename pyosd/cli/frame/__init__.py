# SPDX-License-Identifier: GPL-2.0-or-later
"""What all verbs of ``osd`` share: options, parameters, output, exit codes, groups."""
