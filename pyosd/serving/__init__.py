# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits that all our HTTP servers share."""
