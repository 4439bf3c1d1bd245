# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts and supervises tgtd, iosd-sandboxd and iosd-manager for one target."""
