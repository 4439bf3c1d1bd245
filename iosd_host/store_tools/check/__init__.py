# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what is wrong with a closed store, without changing it."""
