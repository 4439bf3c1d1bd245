# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections to a target's control socket and to its supervisor (docs/control.md)."""
