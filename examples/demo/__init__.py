# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration behind ``make demo``."""
