"""The API object, and what its OpenAPI document says beyond the shapes of the answers."""

from __future__ import annotations

from typing import Any, Final, cast

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from memory.api.schemas.base import ErrorBody

REFUSALS: Final = {
    400: ("InvalidJson", "The body is not a JSON object"),
    401: ("Unauthorized", "No valid key and no session"),
    403: ("Forbidden", "The caller may not do this"),
    404: ("NotFound", "It does not exist, or another owner holds it"),
    409: ("Conflict", "The change collides with what is there"),
    413: ("TooLarge", "The body is too large"),
    422: ("Invalid", "Something that was sent cannot be accepted; `fields` says where"),
    503: ("Unavailable", "The database, or what was asked for by name, cannot serve now"),
}
"""Every status that refuses: the name of its component, and when it comes."""

ALWAYS: Final = (401, 403, 503)
OF_CHANGES: Final = (404, 409, 422)
WITH_INPUT: Final = (404, 422)
WITH_BODY: Final = (400, 413)
OF_VAULTS: Final = (409,)
"""What is in a vault cannot be read while it is locked."""
VAULT: Final = "/{vault}"
_REF: Final = "#/components/{kind}/{name}"


class StudioApi(NinjaAPI):
    """A NinjaAPI whose document names every refusal, in the one error shape."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The OpenAPI document with the refusals of each route."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        shapes = ErrorBody.model_json_schema(
            by_alias=True, ref_template=_REF.format(kind="schemas", name="{model}")
        )
        parts = document["components"]
        parts["schemas"] |= shapes.pop("$defs") | {"ErrorBody": shapes}
        parts["responses"] = {name: _response(text) for name, text in REFUSALS.values()}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                _tell_refusals(path, method, operation)
                _tell_body(operation)
        return document


def _response(text: str) -> dict[str, Any]:
    shape = {"$ref": _REF.format(kind="schemas", name="ErrorBody")}
    return {"description": text, "content": {"application/json": {"schema": shape}}}


def _tell_refusals(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add what one route may refuse, unless it tells that status itself."""
    told = set(ALWAYS)
    if VAULT in path:
        told |= set(OF_VAULTS)
    if method != "get":
        told |= set(OF_CHANGES)
    if operation.get("parameters") or "requestBody" in operation:
        told |= set(WITH_INPUT)
    if "requestBody" in operation:
        told |= set(WITH_BODY)
    answers = cast(dict[int, Any], operation["responses"])
    for status in sorted(told):
        name = REFUSALS[status][0]
        answers.setdefault(status, {"$ref": _REF.format(kind="responses", name=name)})


def _tell_body(operation: dict[str, Any]) -> None:
    """A body that may be left out may not be ``null``, whatever its Python type says."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        choices = content["schema"].pop("anyOf", [])
        if len(choices) == 2 and {"type": "null"} in choices:
            content["schema"] = next(choice for choice in choices if choice.get("type") != "null")
        elif choices:
            content["schema"]["anyOf"] = choices
