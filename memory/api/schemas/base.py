"""What the shapes share: camelCase outside, strict types, unknown fields refused or dropped."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from ninja import Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

TypeName = Literal["factual", "episodic", "procedural", "semantic"]


def _valid_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("the text holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode") from None
    return value


def _whole(value: object) -> object:
    """JSON knows one kind of number: ``20.0`` is ``20``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, AfterValidator(_valid_text)]
WHOLE: Final = BeforeValidator(_whole)
"""Stands behind the bounds, or the document would not say them as bounds."""
Whole = Annotated[int, WHOLE]
NonEmpty = Annotated[Text, Field(min_length=1)]
Metadata = dict[str, Any]


class Shape(Schema):
    """A response, or a request that drops unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, strict=True)


class Strict(Shape):
    """A request that refuses unknown fields."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, strict=True, extra="forbid"
    )


class Success(Shape):
    """The whole answer of a change that has nothing else to tell."""

    success: bool = True


class ErrorDetail(Shape):
    """What is wrong: a stable code, a message for people, and the fields it is about."""

    code: str
    message: str
    fields: dict[str, str] | None = None
    request_id: str


class ErrorBody(Shape):
    """The one error shape."""

    error: ErrorDetail
