# SPDX-License-Identifier: GPL-2.0-or-later
"""The exceptions of the client and those of scripts: one name for one meaning."""

from __future__ import annotations

import inspect

import pyosd
from pyosd import errors, osd
from pyosd.osd._client.session import KINDS, translate

ONLY_SCRIPTS = {"Ended"}  # tells a script that its job ends; a client has no such moment


def test_exceptions_of_scripts_are_names_of_the_client() -> None:
    scripts = {
        name
        for name, each in vars(osd).items()
        if inspect.isclass(each) and issubclass(each, BaseException)
    }
    assert scripts - ONLY_SCRIPTS == KINDS.keys()
    for name in scripts - ONLY_SCRIPTS:
        ours, theirs = getattr(pyosd, name), getattr(osd, name)
        assert issubclass(ours, errors.OSDError) and issubclass(theirs, osd.OSDError)
        assert type(translate(ours(5, 0x24, 0, "no"))) is theirs


def test_builtin_bases() -> None:
    """What catches an exception by its builtin base in a script catches it at a client.

    Invalid is a ValueError in scripts only: at a client a ValueError means that nothing was sent.
    """
    for builtin in (LookupError, PermissionError):
        for name in KINDS:
            assert issubclass(getattr(pyosd, name), builtin) == issubclass(
                getattr(osd, name), builtin
            )
    assert issubclass(osd.Invalid, ValueError) and not issubclass(pyosd.Invalid, ValueError)


def test_other_refusals_are_an_osderror() -> None:
    assert type(translate(errors.TargetBusy(0, 0, 0, "busy"))) is osd.OSDError
