"""``docs/configuration.md`` says what the code does: fields, defaults, bounds, variables."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings

from engine.decay import DEFAULT_DAYS, DEFAULT_IMMUNITY
from engine.providers import catalogue
from engine.providers.speech import ProviderProtocol
from engine.types import MemoryType
from memory.api.schemas.qdrant import QdrantSettingsIn
from memory.api.schemas.settings import MemorySettingsIn
from memory.stored_settings import FIELDS, MEMORY_FIELDS, QDRANT_FIELDS, Field
from memstudio import providers as outer_providers

ROOT: Final = Path(settings.BASE_DIR)
TEXT: Final = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
NAME: Final = re.compile(r"`([^`]+)`")

FIRST_SEED: Final[dict[str, tuple[str, Any, Any]]] = {
    "enabled": ("memoryEnabled", False, None),
    "maxTokens": ("memoryMaxTokens", 2000, (0, 16_000)),
    "retentionDays": ("memoryRetentionDays", 30, (1, 365)),
    "strategy": ("memoryStrategy", "hybrid", {"recent", "semantic", "hybrid"}),
    "skillsEnabled": ("skillsEnabled", True, None),
    "embeddingSource": (
        "memoryEmbeddingSource",
        "auto",
        {"remote", "static", "transformers", "auto"},
    ),
    "embeddingProviderModel": ("memoryEmbeddingProviderModel", None, None),
    "customBaseUrl": ("memoryEmbeddingCustomBaseUrl", None, None),
    "customModelId": ("memoryEmbeddingCustomModelId", None, None),
    "transformersEnabled": ("memoryTransformersEnabled", False, None),
    "staticEnabled": ("memoryStaticEnabled", False, None),
    "rerankEnabled": ("memoryRerankEnabled", False, None),
    "rerankProviderModel": ("memoryRerankProviderModel", None, None),
    "vectorStore": ("memoryVectorStore", "auto", {"sqlite-vec", "qdrant", "auto"}),
    "primaryBackend": ("memoryPrimaryBackend", "sqlite", None),
    "fallbackBackends": ("memoryFallbackBackends", (), None),
    "backendConfigs": ("memoryBackendConfigs", {}, None),
    "autoSummarize": ("memoryAutoSummarize", False, None),
}
"""Every setting of the first seed: its key in the database, its default, its bounds or choices."""

FIRST_SEED_QDRANT: Final = {
    "enabled": False,
    "host": "",
    "port": 6333,
    "collection": "omniroute_memory",
    "embeddingModel": "openai/text-embedding-3-small",
    "quantization": "none",
    "apiKey": "",
}


def table(heading: str) -> Iterator[list[str]]:
    """The rows of the first table below a heading, as cells."""
    section = TEXT.split(f"\n{heading}\n", 1)[1]
    rows = re.split(r"\n###? ", section, maxsplit=1)[0].splitlines()
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        for row in rows
        if row.startswith("|")
    ]
    return (row for row in cells[2:])


def described(heading: str) -> dict[str, tuple[str, str, str]]:
    """Default, bounds and meaning of each field; one row may describe several."""
    found: dict[str, tuple[str, str, str]] = {}
    for names, default, bounds, meaning in table(heading):
        fields = NAME.findall(names)
        defaults = [part.strip() for part in default.split(",")]
        for place, name in enumerate(fields):
            assert name not in found, f"{name} is described twice"
            found[name] = (
                defaults[place] if len(defaults) == len(fields) else default,
                bounds,
                meaning,
            )
    return found


def shown(entry: Field) -> str:
    """A default as the document writes it; a secret or an empty text is blank."""
    if entry.kind == "secret" or entry.default == "":
        return ""
    if isinstance(entry.default, float):
        return f"{entry.default:g}"
    value = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("entry", FIELDS, ids=lambda entry: entry.name)
def test_a_setting_is_described_as_it_is(entry: Field) -> None:
    is_qdrant = entry in QDRANT_FIELDS
    default, bounds, meaning = described("### Qdrant" if is_qdrant else "## Settings")[entry.api]
    assert default.strip("`") == shown(entry)
    if entry.kind == "integer" and not is_qdrant:
        assert bounds == f"{entry.low}–{entry.high}"
    if entry.kind == "choice":
        assert set(NAME.findall(bounds)) == set(entry.choices)
    if not is_qdrant:
        assert ("*ours*" in meaning) is (entry.api not in FIRST_SEED)


def test_nothing_is_described_that_is_no_setting() -> None:
    assert set(described("## Settings")) == {entry.api for entry in MEMORY_FIELDS}
    assert set(described("### Qdrant")) == {entry.api for entry in QDRANT_FIELDS}


def test_every_setting_of_the_first_seed_is_there_with_its_key_default_and_bounds() -> None:
    known = {entry.api: entry for entry in MEMORY_FIELDS}
    for name, (key, default, bounds) in FIRST_SEED.items():
        entry = known[name]
        assert (entry.key, entry.default) == (key, default), name
        if isinstance(bounds, tuple):
            assert (entry.low, entry.high) == bounds
        elif bounds:
            assert bounds <= set(entry.choices)
    qdrant = {entry.api: entry.default for entry in QDRANT_FIELDS}
    assert FIRST_SEED_QDRANT.items() <= qdrant.items()


@pytest.mark.parametrize(
    ("schema", "fields"),
    [(MemorySettingsIn, MEMORY_FIELDS), (QdrantSettingsIn, QDRANT_FIELDS)],
    ids=["memory", "qdrant"],
)
def test_what_may_be_sent_has_the_same_bounds(schema: Any, fields: tuple[Field, ...]) -> None:
    document = schema.model_json_schema(by_alias=True)
    stored_only = {"vectorSize", "hnswEfConstruct"}
    assert set(document["properties"]) == {entry.api for entry in fields} - stored_only
    for entry in fields:
        if entry.api in stored_only:
            continue
        kinds = document["properties"][entry.api]["anyOf"]
        if entry.kind == "integer":
            assert (kinds[0]["minimum"], kinds[0]["maximum"]) == (entry.low, entry.high)
        if entry.kind == "choice":
            assert set(kinds[0]["enum"]) == set(entry.choices)
        if entry.kind == "fraction":
            assert (kinds[0]["minimum"], kinds[0]["maximum"]) == (0, 1)


def read_variables() -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """Every variable that the code reads by name: how, its default where that is a constant, and
    its bounds."""
    found: dict[str, tuple[str, Any, dict[str, Any]]] = {}
    for path in sorted((ROOT / "memstudio").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if _reads_variable(node):
                values = [_constant(argument) for argument in node.args]  # type: ignore[attr-defined]
                bounds = {word.arg: _constant(word.value) for word in node.keywords}  # type: ignore[attr-defined]
                default = values[1] if len(values) > 1 else None
                found[values[0]] = (node.func.attr, default, bounds)  # type: ignore[attr-defined]
    return found


def _reads_variable(node: ast.AST) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="env"), attr=how),
            args=[ast.Constant(value=str()), *_],
        ):
            return how != "prefixed"
    return False


def _constant(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(ast.unparse(node))
    except ValueError:
        return None


VARIABLES: Final = read_variables()


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_is_described_as_it_is_read(name: str) -> None:
    rows = variable_rows()
    default, text = rows[name]
    how, value, bounds = VARIABLES[name]
    if how in ("flag", "integer", "choice") and value is not None:
        assert default == f"`{json.dumps(value).strip(chr(34))}`"
    if how == "secret":
        assert "(secret)" in text
    if "high" in bounds:
        assert f"{bounds['low']} to {bounds['high']}" in text


def variable_rows() -> dict[str, tuple[str, str]]:
    """Default and meaning of each variable; one row may describe several."""
    rows = table("## Environment")
    return {name: (default, text) for first, default, text in rows for name in NAME.findall(first)}


def test_the_variables_of_the_first_seed_are_read() -> None:
    assert {
        "MEMORY_RRF_K",
        "MEMORY_VEC_TOP_K",
        "MEMORY_EMBEDDING_CACHE_MAX",
        "MEMORY_EMBEDDING_CACHE_TTL_MS",
        "MEMORY_STATIC_MODEL",
        "MEMORY_STATIC_CACHE_DIR",
        "MEMORY_TRANSFORMERS_MODEL",
    } <= set(VARIABLES)
    differences = (ROOT / "docs/differences.md").read_text(encoding="utf-8")
    assert "`MEMORY_VEC_QUANTIZATION`" in differences


def test_typed_decay_is_described_as_it_is() -> None:
    rows = variable_rows()
    prefix = "MEMORY_TYPED_DECAY_"
    assert rows[f"{prefix}ACCESS_IMMUNITY"][0] == f"`{DEFAULT_IMMUNITY}`"
    assert rows[f"{prefix}EPISODIC_DAYS"][0] == f"`{DEFAULT_DAYS[MemoryType.EPISODIC]}`"
    for memory_type, days in DEFAULT_DAYS.items():
        is_named = f"…{memory_type.value.upper()}_DAYS" in rows[f"{prefix}EPISODIC_DAYS"][1]
        assert is_named is (days is None)


def test_providers_are_described_as_they_are_read() -> None:
    section = TEXT.split("\n## Providers\n", 1)[1].split("\n## ", 1)[0]
    rows = list(table("## Providers"))
    assert {NAME.findall(row[0])[0] for row in rows} == outer_providers.KEYS
    suffixes = {name for row in rows[1:] for name in NAME.findall(row[1])}
    assert suffixes == {f"…_{suffix}" for suffix in outer_providers.SUFFIXES}
    protocols = next(row[2] for row in rows if row[0] == "`protocol`")
    assert set(NAME.findall(protocols)) == {str(protocol) for protocol in ProviderProtocol}
    words = " ".join(section.split())
    for service in catalogue.services():
        title = service.title.removesuffix(" AI").removesuffix(" server").removeprefix("Google ")
        assert title in words or f"`{service.id}`" in words, service.id
