# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults planted in a copy of the source, each of which a test of the gate must find (`make mutants`)."""
