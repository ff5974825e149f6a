"""Where each described behaviour is held: by a test whose name carries the id of the case, or by
a line of ``docs/differences.md``, unless ``make cases`` runs its area.

In a test the id is its area in words, then its number: ``rest-14`` is in ``test_rest_14_…`` and in
``test_rest_14_16_…``, and in the id of a parameter (``id="rest-14"``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings

from memory.cases.registry import adapter_for

PACKAGES: Final = ("engine", "memory", "memstudio")
_AREA: Final = re.compile(r"(?P<area>[a-z]\w*?)-(?P<number>\d+)")
_RANGE: Final = re.compile(r"([a-z]\w*)-(\d+) to \1-(\d+)")


@dataclass(frozen=True, slots=True)
class Held:
    """One case: the tests that carry its id, and whether the differences name it."""

    case_id: str
    tests: tuple[str, ...]
    is_told: bool
    is_run: bool = False
    """Whether ``make cases`` runs its area from the file."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing holds it."""
        return not (self.tests or self.is_told or self.is_run)

    @property
    def places(self) -> list[str]:
        """What holds it, for people."""
        told = ["docs/differences.md"] if self.is_told else []
        return [*self.tests, *told, *(["make cases"] if self.is_run else [])]


def held(case_ids: Iterable[str]) -> list[Held]:
    """What holds each of these cases."""
    names = list(test_names(Path(settings.BASE_DIR)))
    told = told_ids((Path(settings.BASE_DIR) / "docs" / "differences.md").read_text("utf-8"))
    return [
        Held(
            case_id,
            tuple(_carrying(case_id, names)),
            is_told=case_id in told,
            is_run=adapter_for(case_id.rpartition("-")[0]) is not None,
        )
        for case_id in case_ids
    ]


def test_names(root: Path) -> Iterator[tuple[str, str]]:
    """Every test, and every id of a parameter, with the file it is in (relative to ``root``)."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if path.name.startswith(("test_", "contracts")):
                where = path.relative_to(root).as_posix()
                for name in _names(ast.parse(path.read_text("utf-8"))):
                    yield where, name


def told_ids(text: str) -> frozenset[str]:
    """The case ids that a text names; ``rest-13 to rest-19`` names seven."""
    found = {match[0] for match in _AREA.finditer(text)}
    for match in _RANGE.finditer(text):
        numbers = range(int(match[2]), int(match[3]) + 1)
        found |= {f"{match[1]}-{number:0{len(match[2])}}" for number in numbers}
    return frozenset(found)


def by_area(rows: Sequence[Held]) -> Mapping[str, list[Held]]:
    """The same in order of their areas."""
    areas: dict[str, list[Held]] = {}
    for row in rows:
        areas.setdefault(row.case_id.rpartition("-")[0], []).append(row)
    return areas


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test"):
                yield name
            case ast.keyword(arg="id", value=ast.Constant(value=str(name))):
                yield name


def _carrying(case_id: str, names: Sequence[tuple[str, str]]) -> Iterator[str]:
    area, _dash, number = case_id.rpartition("-")
    carries = re.compile(rf"(?<![a-z_]){area}(?:[_-]\d+)*[_-]{number}(?!\d)")
    for where, name in names:
        if carries.search(name.removeprefix("test_")):
            yield f"{where}::{name}"
