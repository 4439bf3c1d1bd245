# SPDX-License-Identifier: GPL-2.0-or-later
"""User objects: bytes and attributes.  Their bytes as a file are in _data.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import ObjectType, OSDObject, unsigned
from ._current import current
from ._data import Data
from ._errors import Invalid
from ._grep import SPAN, compiled, find, grep
from ._transport import Call
from ._values import NAME, Settable, encode_names, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._grep import Found, Line, Pattern

__all__ = ["userobject"]

VERSION = (0x2000_0005, 1)


def name_of(page: int, number: int) -> int:
    """An attribute's name in one number.  Raises: Invalid."""
    page, number = NAME.unpack(encode_names([(page, number)])[0])
    return page << 32 | number


class userobject(OSDObject):  # noqa: N801 -- the names scripts use (the iOSD paper)
    """A user object: bytes and attributes, named by two numbers.

    >>> o = osd.userobject(p.partition_id).create()
    >>> o.data.write("Hello World\\n")
    12
    >>> for line in o.data:
    ...     print(line)
    b'Hello World\\n'
    >>> o.remove()
    """

    object_type = ObjectType.USER_OBJECT

    def __init__(self, partition_id: int, object_id: int = 0) -> None:
        super().__init__(partition_id, object_id)

    @property
    def data(self) -> Data:
        """A new file object over the bytes, at position 0, at every access.

        So `u.data.read()` reads from the beginning each time.  Keep the file object to continue where
        the last call ended.

        >>> f = u.data
        >>> f.readline(), f.readline(), u.data.readline()
        (b'one\\n', b'two\\n', b'one\\n')
        """
        return Data(self.partition_id, self.object_id)

    def create(self) -> userobject:
        """Make the object, empty.  With id 0 the target chooses one, which is in object_id afterwards.

        >>> osd.userobject(p.partition_id).create().length()
        0

        Returns: itself.
        Raises: Exists: the id is taken, or reserved (below 10000h and above
            7FFF_FFFF_FFFF_FFFFh); NotFound: there is no such partition; NoSpace; PermissionDenied:
        also where the zone is no whole partition.
        """
        self.object_id = self._call(Call.CREATE, 1)[0]
        return self

    def remove(self) -> None:
        """Remove it with its bytes and attributes, also from collections.

        An open file of it raises NotFound at the next read.

        >>> u.remove()
        >>> u.exists()
        False

        Raises: NotFound, PermissionDenied; Conflict: it represents a job that has not ended.
        """
        self._call(Call.REMOVE)

    def length(self) -> int:
        """The number of bytes, up to the last one written.

        >>> u.length()
        14

        Raises: NotFound, PermissionDenied.
        """
        return self._call(Call.LENGTH)[0]

    def data_version(self) -> bytes:
        """The version of its bytes, which changes with them and is never used again.

        >>> before = u.data_version()
        >>> u.clear(0, 1)
        >>> u.data_version() == before
        False

        Raises: NotFound, PermissionDenied.
        """
        return bytes(self.getattr([VERSION])[0][2])

    # -- attributes in one step

    def compare_and_swap(self, page: int, number: int, expected: Settable, new: Settable) -> bool:
        """Set an attribute to new if its value is expected, in one atomic step.

        Args: expected, new: values as for setattr(); an empty one stands for an undefined attribute.
        Returns: whether the value was expected, and is new now.

        >>> u.compare_and_swap(10, 1, "", "mine"), u.compare_and_swap(10, 1, "", "yours")
        (True, False)

        Raises: NotFound, NoSpace, PermissionDenied; Invalid: as setattr().
        """
        compare, swap = encode_value(expected), encode_value(new)
        return bool(
            self._call(Call.SWAPATTR, name_of(page, number), len(compare), compare + swap)[0]
        )

    def fetch_and_add(self, page: int, number: int, addend: int = 1) -> int:
        """Add to an attribute that is a number of 8 bytes, in one step, modulo 2**64.

        Args: addend: can be negative.  An undefined attribute counts as 0.
        Returns: what it was before.

        >>> u.fetch_and_add(10, 2), u.fetch_and_add(10, 2, 5), u.fetch_and_add(10, 2, 0)
        (0, 1, 6)

        Raises: NotFound, NoSpace, PermissionDenied; Invalid: it is not 8 bytes long.
        """
        return self._call(Call.ADDATTR, name_of(page, number), addend % (1 << 64))[0]

    # -- search

    def grep(
        self, pattern: Pattern, *, literal: bool = False, ignore_case: bool = False
    ) -> Iterator[Line]:
        """Lines that match a regular expression, as (offset, line without its end).

        ^ and $ match the begin and end of a line.  Lines of more than 4 MiB come in overlapping pieces.

        Args: as find().

        >>> list(u.grep("t[wh]"))
        [Line(offset=4, line=b'two'), Line(offset=8, line=b'three')]

        Raises: Invalid: no regular expression; NotFound, PermissionDenied, at the first line.
        """
        return grep(self._block, compiled(pattern, literal, ignore_case))

    def find(
        self,
        pattern: Pattern,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        span: int = SPAN,
    ) -> Iterator[Found]:
        """Matches of a regular expression anywhere in the bytes, as (offset, match).

        Memory does not grow with the object.

        Args: pattern: str (as UTF-8), bytes, or a compiled pattern.
            literal: the pattern is text, not a regular expression.  ignore_case: of ASCII letters.
            span: longest match in bytes; a longer one can be cut or missed.

        >>> list(u.find("e\\nt"))
        [Found(offset=2, match=b'e\\nt')]

        Raises: Invalid: no regular expression, or a span below 1; NotFound, PermissionDenied, at
        the first match.
        """
        return find(self._block, compiled(pattern, literal, ignore_case), span)

    def _block(self, offset: int, buffer: memoryview) -> int:
        """Read to a buffer as far as there is anything; how many bytes it were."""
        filled = 0
        while filled < len(buffer):
            count = current().readinto(
                self.partition_id, self.object_id, offset + filled, buffer[filled:]
            )
            if not count:
                break
            filled += count
        return filled

    # -- bytes

    def clear(self, offset: int, length: int) -> None:
        """Fill a range with zeros, and free its space.

        Args: offset, length: bytes.  The object is extended to the end of the range if it is shorter.

        >>> u.clear(0, 3)
        >>> u.data.read()
        b'\\x00\\x00\\x00\\ntwo\\nthree\\n'

        Raises: NotFound, NoSpace, PermissionDenied; Invalid: no range, or one beyond 2**63.
        """
        span = range_of(offset, length)
        self._call(Call.CLEAR, *span)

    def punch(self, offset: int, length: int) -> None:
        """Remove a range.  The bytes behind it move to its place, and the object becomes shorter.

        Args: offset, length: bytes, both inside the object.

        >>> u.punch(0, 4)
        >>> u.data.read()
        b'two\\nthree\\n'

        Raises: NotFound, NoSpace, PermissionDenied; Invalid: no range, or beyond the end.
        """
        span = range_of(offset, length)
        self._call(Call.PUNCH, *span)

    def flush(self) -> None:
        """Return when all writes so far, by any program, survive a power cut.

        Without flush(), completed calls of write() and setattr() survive the end of any process.

        >>> u.flush()

        Raises: NotFound, PermissionDenied, StorageError.
        """
        self._call(Call.FLUSH)


def range_of(offset: int, length: int) -> tuple[int, int]:
    """Two numbers that name bytes.  Raises: Invalid."""
    span = unsigned(offset, "an offset"), unsigned(length, "a length")
    if sum(span) >= 1 << 63:
        raise Invalid(f"{offset} + {length} is beyond the last byte there can be")
    return span
