# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods that callers may request, their parameters, and what each does."""
