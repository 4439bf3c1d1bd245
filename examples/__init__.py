# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples; each is run by a test."""
