# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of targets: stored, derived, changed at the target, used to sign; and certificates."""
