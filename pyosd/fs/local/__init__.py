# SPDX-License-Identifier: GPL-2.0-or-later
"""Local files: folders, large files piece by piece, those that appear whole, transfers that continue."""
