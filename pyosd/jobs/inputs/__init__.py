# SPDX-License-Identifier: GPL-2.0-or-later
"""The inputs on which the result of a job depends."""
