# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs the problems that check/ finds."""
