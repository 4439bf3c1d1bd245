# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of `osd` that belong to a target's host, and the program iosd-manager."""
