# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager's decisions: pure functions of readings, and their simulation."""
