# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of OSD-2 and of this target, and the values they stand for.  Pure: no I/O."""
