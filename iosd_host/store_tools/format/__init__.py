# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of a store (docs/format.md): parsers and encoders, no files opened."""
