# SPDX-License-Identifier: GPL-2.0-or-later
"""What verbs of ``osd`` print: tables and JSON, progress, bytes of others on a terminal."""
