# SPDX-License-Identifier: GPL-2.0-or-later
"""The administrators' side of the resource manager: client, verbs, and how both find what runs."""
