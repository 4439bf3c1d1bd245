# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager: the targets it manages, its state, and the requests of administrators."""
