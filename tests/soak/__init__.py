# SPDX-License-Identifier: GPL-2.0-or-later
"""A target under mixed load and random kills for hours: what of it grows (`make soak [HOURS=2]`)."""
