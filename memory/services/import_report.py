"""What an import did, or would do: counts, and every reason why something is not stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from engine.exchange.found import Place, Reason, Unreadable
from memory.errors import Invalid
from memory.said import Said, parts, said

MAX_PROBLEMS: Final = 50
MAX_OWNERS: Final = 50
MAX_SAMPLE: Final = 5
NEW, UPDATED, SAME = "imported", "updated", "same"

REASONS: Final[Mapping[Reason, str]] = {
    Reason.NOT_JSON: gettext_noop("This line is not JSON."),
    Reason.BROKEN: gettext_noop("The file is broken here: this is not JSON."),
    Reason.TOO_LONG: gettext_noop("This is too long to be read."),
    Reason.NOT_A_CHAT: gettext_noop("This is not a conversation of such an export."),
    Reason.NOT_A_ROW: gettext_noop("This is not a row of CSV."),
    Reason.NOT_UTF8: gettext_noop("This is not UTF-8 text."),
    Reason.DAMAGED: gettext_noop("This part of the archive is damaged or encrypted."),
    Reason.UNSAFE_NAME: gettext_noop("Its name leads out of the archive."),
    Reason.NO_TEXT: gettext_noop("There is no text in it."),
}
UNREADABLE: Final[Mapping[str, str]] = {
    "invalid_utf8": gettext_noop("The file is not UTF-8 text."),
    "invalid_archive": gettext_noop("The archive is damaged."),
    "archive_too_large": gettext_noop("The archive holds too much when it is unpacked."),
    "nothing_to_import": gettext_noop("There is nothing to import in it."),
}


def refusal(error: Unreadable) -> Invalid:
    """The refusal of a file as a whole, for a client."""
    message = UNREADABLE.get(error.code)
    return Invalid(_(message) if message else str(error), code=error.code)


def reason_text(reason: Reason) -> Said:
    """Why a record cannot be read."""
    return said(REASONS[reason])


@dataclass(frozen=True, slots=True)
class Problem:
    """One record that was skipped: its place in the file (from 1, counted in ``unit``; in an
    archive in the member ``file``) and why.

    ``parts`` is the same as ``message`` in the form that any reader's language can be made of.
    """

    place: int
    message: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    unit: str = "record"
    file: str = ""


@dataclass(slots=True)
class ImportReport:
    """What an import did; with ``dry_run`` what it would do, and then nothing was written.

    ``total`` = ``imported`` (new) + ``updated`` + ``same`` + ``skipped``; ``left_out`` counts what
    is no memory by choice. Of problems and owners only the first 50 are kept.
    """

    format: str = "json"
    dry_run: bool = False
    total: int = 0
    imported: int = 0
    updated: int = 0
    same: int = 0
    skipped: int = 0
    left_out: int = 0
    seconds: float = 0.0
    types: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    sample: list[dict[str, Any]] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Records a second."""
        return self.total / self.seconds if self.seconds else 0.0

    def skip(self, place: Place, reasons: Sequence[str]) -> None:
        """Count a record that cannot be stored."""
        self.total += 1
        self.skipped += 1
        if len(self.problems) < MAX_PROBLEMS:
            text = "; ".join(reasons)
            self.problems.append(
                Problem(place.number, text, parts(reasons), place.unit, place.file)
            )

    def count(self, outcome: str, kind: str, owner: str) -> None:
        """Count a record that was, or would be, stored or is there already."""
        self.total += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        self.types[kind] += 1
        if owner in self.owners or len(self.owners) < MAX_OWNERS:
            self.owners[owner] += 1

    def as_json(self) -> dict[str, Any]:
        """The same shape wherever a report is shown or kept. Texts of memories are never kept."""
        return {
            "format": self.format,
            "dryRun": self.dry_run,
            "total": self.total,
            "imported": self.imported,
            "updated": self.updated,
            "same": self.same,
            "skipped": self.skipped,
            "leftOut": self.left_out,
            "types": dict(self.types),
            "owners": dict(self.owners),
            "problems": [asdict(problem) for problem in self.problems],
            "seconds": round(self.seconds, 3),
            "perSecond": round(self.per_second, 1),
        }
