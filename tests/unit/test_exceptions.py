# SPDX-License-Identifier: GPL-2.0-or-later
"""The exceptions of the client and those of scripts: one name for one meaning."""

from __future__ import annotations

import inspect
import pickle
import threading
from collections.abc import Iterator

import pytest

import pyosd
from pyosd import errors, osd
from pyosd.cluster.board import ObjectOutcome
from pyosd.cluster.run import IncompleteError
from pyosd.osd._client.session import KINDS, translate
from pyosd.secmgr.client import AccessRefused
from pyosd.types import ref

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


def test_the_errno_of_a_builtin_base() -> None:
    """Programs catch an OSError and compare its number."""
    for error in (errors.NoSuchName, errors.NameExists, errors.NotADirectory, errors.IsADirectory):
        number = error(5, 0x80, 0, "refused").errno
        assert number is not None and type(OSError(number, "")) in error.__mro__


def test_other_refusals_are_an_osderror() -> None:
    assert type(translate(errors.TargetBusy(0, 0, 0, "busy"))) is osd.OSDError


class LiveJob:
    """A job of a session: it has what no other process can have."""

    def __init__(self) -> None:
        self.id, self.name = ref(0x10000, 7), "count"
        self.lock = threading.Lock()


def one_of_each() -> Iterator[Exception]:
    """An instance of every exception that callers of pyosd may see."""
    yield AccessRefused("nobody knows the user", known=False)
    for each in vars(errors).values():
        if not inspect.isclass(each):
            continue
        if issubclass(each, errors.Unreachable):
            yield each("no answer")
        elif issubclass(each, errors.OSDError):
            yield each(5, 0x24, 0, "refused")
        elif issubclass(each, errors.JobError):
            yield each(LiveJob(), 201, "a remedy", "it raised")


@pytest.mark.parametrize("error", [*one_of_each()], ids=lambda each: type(each).__name__)
def test_another_process_gets_an_exception_as_it_was(error: Exception) -> None:
    """One that cannot be unpickled stops the pool of multiprocessing that ran the function."""
    error.add_note("a note")
    there = pickle.loads(pickle.dumps(error))
    assert type(there) is type(error) and str(there) == str(error)
    was, now = vars(error), vars(there)
    if job := was.pop("job", None):
        now_job = now.pop("job")
        assert (now_job.id, now_job.name) == (job.id, job.name)
    assert now == was and now["__notes__"] == ["a note"]


def test_another_process_gets_what_an_incomplete_run_has() -> None:
    outcome = ObjectOutcome(ref(0x10000, 7), None, "it raised", "a", 1)
    there = pickle.loads(pickle.dumps(IncompleteError([outcome], {"b": "no answer"})))
    assert there.failed == [outcome] and there.lost == {"b": "no answer"}
