"""JSON documents read value by value: a list, or the lists and members of an object.

Only one value is in memory at a time. A value that is broken is told with its place; where every
value begins a line of its own, reading goes on with the next one.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

CHUNK_BYTES: Final = 1 << 18
MAX_VALUE: Final = 1 << 26
"""Characters of one value."""
NEAR_THE_END: Final = 16
"""So close to the end of what was read, a value may only be cut off."""
_BLANK: Final = " \t\n\r"
_BLANKS: Final = re.compile(f"[{_BLANK}]*")
_SEPARATORS: Final = re.compile(f"[{_BLANK},]*")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Value:
    """A value: of a list its number from 1, of an object's list its name as well; of a member
    that is no list the name, and the number 0."""

    name: str
    number: int
    value: Any
    is_broken: bool = False
    is_too_long: bool = False


class Broken(ValueError):
    """The text is no JSON at this point."""


class TooLong(Broken):
    """A value is longer than anything that is read."""


class JsonStream:
    """A document as it comes from a binary file. Bytes that are no UTF-8 become surrogates."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._is_whole = False
        self._indent: str | None = None
        self._is_stuck = False
        self.lists: set[str] = set()
        """Names of the lists that were begun."""

    def values(self) -> Iterator[Value]:
        """The elements of a list, or the members of an object, those of its lists one by one."""
        while first := self._peek():
            if first == "[":
                yield from self._elements("")
            elif first == "{":
                yield from self._members()
            else:
                yield Value("", 1, None, is_broken=True)
                return
            if self._is_stuck:
                return

    def whole(self) -> Iterator[Value]:
        """The document as one value, and what may follow it: others, one behind the other."""
        self._indent, number = "\n", 0
        while self._peek():
            number += 1
            try:
                yield Value("", number, self._value())
            except Broken as error:
                yield self._broken("", number, error)
                if not self._skip_to_next():
                    return

    def _members(self) -> Iterator[Value]:
        self._at += 1
        while not self._is_stuck:
            mark = self._peek()
            if mark == ",":
                self._at += 1
            elif mark == '"':
                yield from self._member()
            else:
                self._is_stuck = mark != "}"
                if self._is_stuck:
                    yield Value("", 0, None, is_broken=True)
                self._at += 1
                return

    def _member(self) -> Iterator[Value]:
        try:
            name = str(self._value())
            if self._peek() != ":":
                raise Broken(name)
            self._at += 1
            if self._peek() == "[":
                self.lists.add(name)
                yield from self._elements(name)
            else:
                yield Value(name, 0, self._value())
        except Broken as error:
            self._is_stuck = True
            yield self._broken("", 0, error)

    def _elements(self, name: str) -> Iterator[Value]:
        self._at += 1
        self._indent, number = None, 0
        while True:
            mark = self._peek()
            if mark == ",":
                # All at once: a file of nothing else must not take minutes.
                self._at = self._behind(_SEPARATORS)
                continue
            if mark == "]":
                self._at += 1
                return
            number += 1
            if number == 1:
                self._indent = self._line_start()
            try:
                yield Value(name, number, self._value())
            except Broken as error:
                yield self._broken(name, number, error)
                if not self._skip_to_next():
                    self._is_stuck = True
                    return

    def _broken(self, name: str, number: int, error: Broken) -> Value:
        return Value(name, number, None, is_broken=True, is_too_long=isinstance(error, TooLong))

    def _line_start(self) -> str | None:
        """The line break and the blanks before this element; None where it begins no line."""
        gap = self._text[: self._at]
        start = gap.rfind("\n")
        return None if start < 0 or gap[start:].strip() else gap[start:]

    def _skip_to_next(self) -> bool:
        """Go to the next line that begins as the first element's did."""
        if self._indent is None:
            return False
        wanted = self._indent + "{"
        self._at += 1
        while (found := self._text.find(wanted, self._at)) < 0:
            self._at = max(self._at, len(self._text) - len(wanted))
            if not self._more():
                return False
        self._at = found + len(self._indent)
        return True

    def _behind(self, marks: re.Pattern[str]) -> int:
        """The place behind such marks, of which there may be none."""
        found = marks.match(self._text, self._at)
        return found.end() if found else self._at

    def _peek(self) -> str:
        """The next mark that is not blank, without taking it; nothing at the end."""
        while True:
            self._at = self._behind(_BLANKS)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._go_on(error)
                continue
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or thousands of levels.
                raise Broken(str(error)) from None
            if end == len(self._text) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def _go_on(self, error: json.JSONDecodeError) -> None:
        """Read on, twice as far, where a value is only cut off. Raises ``Broken``."""
        length = len(self._text) - self._at
        is_cut = error.msg.startswith("Unterminated") or (
            error.pos >= len(self._text) - NEAR_THE_END
        )
        if not is_cut:
            raise Broken(error.msg)
        if length > MAX_VALUE:
            raise TooLong(error.msg)
        wanted = max(2 * length, CHUNK_BYTES)
        if not self._more():
            raise Broken(error.msg)
        while len(self._text) - self._at < wanted and self._more():
            pass

    def _more(self) -> bool:
        """Read a piece more and forget what was taken; whether there was one."""
        if self._is_whole:
            return False
        pieces: list[str] = []
        while not pieces or not pieces[-1]:
            block = self._file.read(CHUNK_BYTES)
            pieces.append(self._decode(block, final=not block))
            if not block:
                self._is_whole = True
                break
        self._text = self._text[self._at :] + "".join(pieces)
        self._at = 0
        return bool(pieces[-1])
