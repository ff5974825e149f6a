"""What families of models read around a query and a document, for servers that add nothing.

OpenAI-compatible servers pass the text on as it is, so the prompt is the client's part. The
templates are those of the models' own cards; a model that is not named here reads plain text.
"""

from __future__ import annotations

import re

from engine.embed.prompts import Prompts

PLAIN = Prompts()
EMBEDDING_GEMMA = Prompts(
    query="task: search result | query: {text}", document="title: {title} | text: {text}"
)
E5 = Prompts(query="query: {text}", document="passage: {text}")

_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_REPRESENT = Prompts(query="Represent this sentence for searching relevant passages: {text}")

_FAMILIES = tuple(
    (re.compile(pattern), prompts)
    for pattern, prompts in (
        (r"embedding-?gemma", EMBEDDING_GEMMA),
        # Only the first generation: it takes task types, later ones read a prompt.
        (r"^gemini-embedding-(?!001|exp)", EMBEDDING_GEMMA),
        (
            r"e5-.*instruct|gte-qwen2.*instruct",
            Prompts(query=f"Instruct: {_TASK}\nQuery: {{text}}"),
        ),
        (r"qwen3-embedding", Prompts(query=f"Instruct: {_TASK}\nQuery:{{text}}")),
        (r"(^|-)e5-(small|base|large)|^glucose-base-ja-v2", E5),
        (
            r"^nomic-embed-text",
            Prompts(query="search_query: {text}", document="search_document: {text}"),
        ),
        (
            r"^bge-(small|base|large)-zh",
            Prompts(query="为这个句子生成表示以用于检索相关文章：{text}"),
        ),
        (r"^bge-(small|base|large)-en|^mxbai-embed", _REPRESENT),
        (r"arctic-embed.*v2|arctic-embed2", Prompts(query="query: {text}")),
        (r"arctic-embed", _REPRESENT),
        (r"^ruri-v3", Prompts(query="検索クエリ: {text}", document="検索文書: {text}")),
    )
)


def prompts_for(model: str) -> Prompts:
    """The prompts of a model by its name, such as ``intfloat/multilingual-e5-large``.

    An organisation before the name and a tag after it (``nomic-embed-text:v1.5``) do not count.
    """
    name = model.strip().lower().rpartition("/")[2].partition(":")[0]
    return next((prompts for family, prompts in _FAMILIES if family.search(name)), PLAIN)
