"""What the shapes of the tools share, and the JSON schemas that clients are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

TypeName = Literal["factual", "episodic", "procedural", "semantic"]


def _valid_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("the text holds a NUL character")
    return value


def _aware(value: datetime) -> datetime:
    """A time without a zone is UTC; every time is given on as the moment in UTC."""
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the calendar") from None


Text = Annotated[str, AfterValidator(_valid_text)]
NonEmpty = Annotated[Text, Field(min_length=1)]
Moment = Annotated[datetime, AfterValidator(_aware)]
Metadata = dict[str, Any]


class Arguments(BaseModel):
    """Arguments of a tool: camelCase as REST has them, snake_case is understood as well.

    Unknown ones are refused, so that a model learns of its mistake.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Result(BaseModel):
    """Structured result of a tool; fields without a value are left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a shape, without what only costs a model tokens."""
    schema = _plain(model.model_json_schema(by_alias=True))
    schema.pop("description", None)
    return schema


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without generated titles, and with optional fields as plain ones that are not required."""
    plain: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            plain[name] = {key: _plain(inner) for key, inner in value.items()}
        elif isinstance(value, dict):
            plain[name] = _plain(value)
        elif name != "title" and not (name == "default" and value is None):
            plain[name] = value
    choices = [choice for choice in plain.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del plain["anyOf"]
        plain |= _plain(choices[0])
    return plain
