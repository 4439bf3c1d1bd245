# SPDX-License-Identifier: GPL-2.0-or-later
"""Used by all folders: log lines, paths, users, and the files that announce running processes."""
