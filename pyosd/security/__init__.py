# SPDX-License-Identifier: GPL-2.0-or-later
"""Credentials: what proves a permission, where it comes from, and how commands are signed with it."""
