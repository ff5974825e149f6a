"""The state of the memory list, as its address tells it. Odd values count as the default."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from engine.types import MemoryType
from memory.services.listing import MemoryFilter, MemoryPage
from memory.views._principal import StudioRequest
from memory.views._render import current_owner

SIZES: Final = (20, 50, 100)
DEFAULT_SIZE: Final = 50
DEFAULT_SORT: Final = "-created"
SORTS: Final = {
    "created": "created_at",
    "updated": "updated_at",
    "key": "key",
    "tokens": "tokens",
    "type": "type",
}
STATES: Final[tuple[tuple[str, Promise], ...]] = (
    ("live", gettext_lazy("Live")),
    ("hidden", gettext_lazy("Hidden")),
    ("archived", gettext_lazy("Archived")),
    ("trash", gettext_lazy("Trash")),
    ("all", gettext_lazy("Every state")),
)
KEPT: Final = ("q", "type", "session", "state", "sort", "size", "page", "open", "edit")


@dataclass(frozen=True, slots=True)
class ListState:
    """What the list shows: filters, order, page, and the row that is open or being edited."""

    owner: str
    q: str = ""
    type: str = ""
    session: str = ""
    state: str = "live"
    sort: str = DEFAULT_SORT
    size: int = DEFAULT_SIZE
    page: int = 1
    open: uuid.UUID | None = None
    edit: uuid.UUID | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether anything narrows the list down, apart from the owner."""
        return bool(self.q or self.type or self.session or self.state != "live" or self.page > 1)

    @property
    def first(self) -> int:
        """1-based place of the first row."""
        return (self.page - 1) * self.size + 1

    @property
    def previous(self) -> int | None:
        """Number of the page before; None for the first, which needs no number."""
        return self.page - 1 if self.page > 2 else None

    @property
    def next(self) -> int:
        """Number of the page after."""
        return self.page + 1

    def last(self, page: MemoryPage) -> int:
        """1-based place of the last row of a page."""
        return self.first + len(page.rows) - 1

    def filter(self) -> MemoryFilter:
        """The same for the list service."""
        sign = "-" if self.sort.startswith("-") else ""
        return MemoryFilter(
            owner=self.owner or None,
            type=self.type or None,
            session=self.session or None,
            q=self.q,
            state=self.state,
            limit=self.size,
            page=self.page,
            order=sign + SORTS[self.sort.removeprefix("-")],
        )


def list_params(request: StudioRequest) -> QueryDict:
    """The parameters of the list in the address bar: of this request, or of htmx's page."""
    if request.method == "GET":
        source = request.GET
    else:
        address = request.htmx.current_url_abs_path if request.htmx else ""
        source = QueryDict(urlsplit(address or "").query)
    params = QueryDict(mutable=True)
    for name in KEPT:
        if source.get(name):
            params[name] = source[name]
    if owner := current_owner(request):
        params["owner"] = owner
    return params


def list_state(request: StudioRequest, params: QueryDict) -> ListState:
    """The state that parameters describe."""
    sort = params.get("sort", DEFAULT_SORT)
    size = _number(params.get("size"), DEFAULT_SIZE)
    return ListState(
        owner=current_owner(request),
        q=params.get("q", "").strip()[:500],
        type=_one_of(params.get("type"), [kind.value for kind in MemoryType], ""),
        session=params.get("session", ""),
        state=_one_of(params.get("state"), [state for state, _label in STATES], "live"),
        sort=sort if sort.removeprefix("-") in SORTS else DEFAULT_SORT,
        size=size if size in SIZES else DEFAULT_SIZE,
        page=min(_number(params.get("page"), 1), 1_000_000),
        open=_uuid(params.get("open")),
        edit=_uuid(params.get("edit")),
    )


def _one_of(value: str | None, known: list[str], default: str) -> str:
    return value if value in known else default


def _number(value: str | None, default: int) -> int:
    # Python refuses to read thousands of digits, and no page has more than these.
    digits = value[:18] if value and value.isascii() and value.isdigit() else ""
    return (int(digits) if digits else 0) or default


def _uuid(value: str | None) -> uuid.UUID | None:
    try:
        return uuid.UUID(value) if value else None
    except ValueError:
        return None
