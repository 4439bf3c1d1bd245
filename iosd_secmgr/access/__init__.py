# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules of access, how they decide a request, how it is refused, and rate limits.  Pure."""
