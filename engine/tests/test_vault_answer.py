from __future__ import annotations

import json

import pytest

from engine.vault.answer import Answer, read
from engine.vault.errors import VaultError

LABELS = ("S1", "S2", "S3")


def said(answer: object = "A [S1]", citations: object = ("S1",), **more: object) -> str:
    given = list(citations) if isinstance(citations, tuple) else citations
    return json.dumps({"answer": answer, "citations": given, **more})


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (said(), Answer("A [S1]", ("S1",))),
        (said("A", ("S2", "S1", "S2")), Answer("A", ("S2", "S1"))),
        (said("A [S3]", ()), Answer("A [S3]", ("S3",))),
        (said("A [S1, S2]；B [S3、S1]", ("S1",)), Answer("A [S1, S2]；B [S3、S1]", LABELS)),
        (f"```json\n{said()}\n```", Answer("A [S1]", ("S1",))),
        (f"\n```\r\n{said()}\r\n```\n", Answer("A [S1]", ("S1",))),
        (said("", (), insufficient_evidence=True), Answer("", (), True)),
        (
            said("Only so far [S1]", insufficient_evidence=True),
            Answer("Only so far [S1]", ("S1",), True),
        ),
        (said("x[S] and S9 and [9] [S]", ("S1",)), Answer("x[S] and S9 and [9] [S]", ("S1",))),
    ],
)
def test_an_answer_is_read_with_its_citations(content: str, found: Answer) -> None:
    assert read(content, LABELS) == found


@pytest.mark.parametrize(
    "content",
    [
        "",
        "null",
        "[]",
        "The answer is A [S1].",
        said() + " thanks",
        f"Here: ```json\n{said()}\n```",
        f"```json\n{said()}\n``````json\n{said()}\n```",
        said("A", ("S9",)),
        said("A", ("s1",)),
        said("A", ("S01",)),
        said("A", (" S1",)),
        said("A", ("[S1]",)),
        said("A", (1,)),
        said("A", (None,)),
        said("A", (["S1"],)),
        said("A", "S1"),
        said("A", None),
        said("A", ()),
        said("A [S10]"),
        said("A [S1, S9]"),
        said("A [S１]"),
        said(""),
        said("  ", ()),
        said(["A"]),
        said(None),
        said("", ("S1",), insufficient_evidence=True),
        said("", (), insufficient_evidence="true"),
        '{"answer": "A", "citations": ["S1"], "score": NaN}',
        "{" * 5000,
    ],
)
def test_what_is_not_exactly_right_is_refused(content: str) -> None:
    with pytest.raises(VaultError) as refused:
        read(content, LABELS)
    assert refused.value.code == "generation_invalid_response"
