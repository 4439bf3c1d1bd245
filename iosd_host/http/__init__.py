# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager's HTTP end: metrics and the console."""
