"""Areas of vaults that pure functions of the engine answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from engine.errors import EngineError
from engine.net.client import HttpClient
from engine.net.proxies import parse_proxy
from engine.testing.fake_provider import Answer, Provider, serving
from engine.text.chunk import byte_range, chunks
from engine.text.tokenize import analyzer
from engine.vault import answer, capacity, config, ingest
from engine.vault.ask import Evidence, ask
from engine.vault.errors import ConfigInvalid, VaultError
from engine.vault.generator import GenerationEndpoint, RemoteGenerator
from memory.cases.registry import Case, CaseFile, adapter

BESIDE: Final = Path("/home/of/the/file")
WRITTEN: Final = '{"answer": "A [S1]", "citations": ["S1"]}'
SERVICE: Final = {"protocol": "compatible", "url": "https://api.example/x", "model": "m"}


@adapter("chunk")
def chunk(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The chunks of a text that is given as pieces and how often each is repeated."""
    body = "".join(text * count for text, count in case["input"]["text_spec"])
    return {
        "chunks": [
            {
                "char_start": piece.start,
                "char_end": piece.end,
                "byte_start": piece.byte_start,
                "byte_end": piece.byte_end,
                "sha256": piece.sha256,
            }
            for piece in chunks(body)
        ]
    }


@adapter("byte_offset")
def byte_offset(case: Case, _file: CaseFile) -> dict[str, int]:
    """Where a text lies in a body."""
    body, wanted = case["input"]["body"], case["input"]["find"]
    start = body.index(wanted)
    end = start + len(wanted)
    byte_start, byte_end = byte_range(body, start, end)
    return {"char_start": start, "char_end": end, "byte_start": byte_start, "byte_end": byte_end}


@adapter("ingest_bytes")
def ingest_bytes(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What a file of these bytes becomes."""
    try:
        text = ingest.read_text(bytes.fromhex(case["input"]["hex"]))
    except VaultError as error:
        return {"result": _refused(error.code, error.reason)}
    return {"result": "ok", "text": text, "body": text}


@adapter("bm25_corpus")
def bm25_corpus(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The terms of each field of each document."""
    cut = analyzer("seed").document_terms
    return {
        "tokens": {
            doc["id"]: [cut(doc[name]) for name in ("title", "body", "metadata")]
            for doc in case["input"]["docs"]
        }
    }


@adapter("citation")
def citation(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What is made of a model's words."""
    asked = case["input"]
    return _answered(lambda: answer.read(asked["content"], asked["labels"]), Provider())


@adapter("ask")
def ask_area(case: Case, _file: CaseFile) -> dict[str, Any]:
    """A question to a real server on loopback; it writes a good answer unless the case has one."""
    asked = case["input"]
    is_gemini = "gemini_body" in asked
    evidence = [Evidence(f"S{place}", "", "text") for place in range(1, asked["results"] + 1)]
    with serving() as provider:
        provider.respond = lambda request: Answer(200, json.dumps(_body(asked)).encode())
        endpoint = GenerationEndpoint(
            f"http://127.0.0.1:{provider.port}/x", "m", "gemini" if is_gemini else "compatible"
        )
        client = HttpClient(wait=lambda seconds: None)
        has_url = asked.get("generation_url", "") is not None
        generator = RemoteGenerator(endpoint, client=client) if has_url else None
        try:
            found = _answered(lambda: ask("question", evidence, generator).answer, provider)
        finally:
            client.close()
    return {"model_calls": len(provider.requests), **found}


def _body(asked: dict[str, Any]) -> object:
    whole = {"choices": [{"message": {"content": WRITTEN}, "finish_reason": "stop"}]}
    return asked.get("gemini_body", asked.get("compatible_body", whole))


def _answered(run: Callable[[], answer.Answer], provider: Provider) -> dict[str, Any]:
    try:
        found = run()
    except VaultError as error:
        return {"error": error.code, "retried": len(provider.requests) > 1}
    return {
        "answer": found.text,
        "citations": list(found.citations),
        "insufficient_evidence": found.is_insufficient,
    }


@adapter("config")
def config_area(case: Case, _file: CaseFile) -> dict[str, str]:
    """One value of the configuration; the rest of its table is as it should be."""
    key, value = case["input"]["key"], case["input"]["value"]
    try:
        if key.startswith("env "):
            parse_proxy(value)
            return {"result": "ok"}
        found = config.read(_document(key, value), beside=BESIDE)
    except ConfigInvalid as error:
        code = "" if error.code == "out_of_range" else error.code
        return {"result": _refused(code, error.explanation)}
    except EngineError as error:
        return {"result": _refused(error.code, "")}
    if key == "rag.local_model_dir":
        is_beside = found.local_model_dir == BESIDE / value
        return {"result": "resolved next to the config file" if is_beside else "elsewhere"}
    return {"result": "ok"}


def _document(key: str, value: object) -> dict[str, object]:
    *tables, name = key.split(".")
    table: dict[str, object] = {name: value}
    if tables[-1] in config.PROTOCOLS:
        table = {**SERVICE, **table}
    for outer in reversed(tables):
        table = {outer: table}
    return table


@adapter("capacity")
def capacity_area(case: Case, _file: CaseFile) -> dict[str, str]:
    """Whether a vault of this size fits."""
    asked = case["input"]
    count = asked.get("chunks", 0)
    dims = asked.get("dims", 0)
    size = capacity.vector_bytes(count, dims) if dims else asked.get("vector_bytes", 0)
    try:
        capacity.check(chunks=count, text_bytes=asked.get("text_bytes", 0), vectors=size)
    except VaultError as error:
        return {"result": _refused(error.code, error.reason)}
    return {"result": "ok"}


def _refused(code: str, remark: str) -> str:
    words = f"error {code}".strip()
    return f"{words} ({remark})" if remark else words
