# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration: schema, files, pools and package sets."""
