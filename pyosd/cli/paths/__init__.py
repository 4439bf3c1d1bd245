# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs about files of a target by their paths."""
