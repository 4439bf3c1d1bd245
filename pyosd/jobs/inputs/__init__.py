# SPDX-License-Identifier: GPL-2.0-or-later
"""What the result of a job depends on."""
