"""The areas of cases that the store in Qdrant answers."""

from __future__ import annotations

from typing import Any

import pytest

from memory.cases.qdrant_areas import qdrant_config, qdrant_quantisation
from memory.cases.registry import CaseFile

NO_FILE = CaseFile([])


def case(**given: Any) -> dict[str, Any]:
    return {"id": "one", "area": "qdrant", "input": given}


def test_qdrant_config_01_the_defaults_are_those_of_the_first_system() -> None:
    found = qdrant_config(case(stored={}), NO_FILE)
    assert found == {
        "enabled": False,
        "host": "",
        "port": 6333,
        "apiKey": None,
        "collection": "omniroute_memory",
        "embeddingModel": "openai/text-embedding-3-small",
        "quantization": "none",
        "vectorSize": 1536,
        "hnswEfConstruct": 128,
    }


@pytest.mark.parametrize(
    ("stored", "port"),
    [("6335", 6335), ("abc", 6333), (6333.6, 6334), (0, 0), (99_999, 99_999), (None, 6333)],
)
def test_a_port_is_a_number_even_as_a_text(stored: object, port: int) -> None:
    assert qdrant_config(case(stored={"qdrantPort": stored}), NO_FILE)["port"] == port


@pytest.mark.parametrize(
    ("name", "collection"),
    [
        ("int8", {"scalar": {"type": "int8", "always_ram": True, "quantile": 0.99}}),
        ("binary", {"binary": {"always_ram": True}}),
        ("none", None),
        ("x", None),
    ],
)
def test_quantised_collections_are_searched_with_rescore(
    name: str, collection: dict[str, Any] | None
) -> None:
    found = qdrant_quantisation(case(quantization=name), NO_FILE)
    assert found["collection"] == collection
    assert found["search"]["quantization"]["rescore"] is True
