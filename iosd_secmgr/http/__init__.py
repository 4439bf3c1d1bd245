# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTTPS end: login, and requests to methods/."""
