# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs about what jobs used: their inputs and outputs."""
