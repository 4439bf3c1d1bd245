# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of verbs of ``osd``: tables and JSON, progress, foreign bytes on a terminal."""
