# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects by their paths, and patterns of paths."""
