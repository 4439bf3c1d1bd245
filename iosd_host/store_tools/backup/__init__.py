# SPDX-License-Identifier: GPL-2.0-or-later
"""Backups of a store: made, listed, verified and restored."""
