# SPDX-License-Identifier: GPL-2.0-or-later
"""Many targets behind one handle: placement of copies, and functions over objects."""
