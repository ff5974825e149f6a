"""The figures of several sizes as tables: for people, and for ``docs/benchmarks.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Result = dict[str, Any]
BEGIN, END = "<!-- speed: made by make bench -->", "<!-- /speed -->"

SEARCHES = {
    "keyword": "keyword",
    "vector": "vector",
    "hybrid": "hybrid",
    "client": "hybrid for a client, uses counted",
    "small_owner": "hybrid, small owner",
    "fts5": "raw FTS5, the same terms",
    "fts5_every_word": "raw FTS5, every word of the question",
    "hnsw": "raw HNSW (usearch, f16)",
    "numpy": "raw numpy scan, one thread",
    "sqlite_vec": "sqlite-vec, float32",
    "mem0_search": "mem0 (Qdrant on disk, no model)",
}
RATIOS = {
    "keyword_over_fts5": "keyword ÷ raw FTS5",
    "vector_over_hnsw": "vector ÷ raw HNSW",
    "vector_over_numpy": "vector ÷ raw numpy scan",
    "sqlite_vec_over_vector": "sqlite-vec ÷ vector",
    "hybrid_over_legs": "hybrid ÷ (keyword + vector)",
    "hybrid_over_raw": "hybrid ÷ (raw FTS5 + raw HNSW)",
    "import_over_raw": "import ÷ (cutting + raw FTS5)",
    "mem0_over_hybrid": "mem0 ÷ hybrid",
}
OTHERS = {
    "recall@20": "vector recall@20 against exact",
    "hnsw_recall@20": "raw HNSW recall@20",
    "import_per_s": "memories imported a second, without embedding",
    "import_per_cpu_s": "the same, a second of processor time",
    "analyse_per_s": "texts cut into terms a second",
    "vectors_per_s": "vectors stored a second",
    "mem0_add_per_s": "mem0: memories added a second",
    "write_p50_ms": "one memory written, p50 ms",
    "hybrid_after_write_p50_ms": "first hybrid search after it, p50 ms",
    "keyword_per_s_1_threads": "keyword searches a second, 1 thread",
    "keyword_per_s_4_threads": "the same, 4 threads",
    "vector_per_s_1_threads": "vector searches a second, 1 thread",
    "vector_per_s_4_threads": "the same, 4 threads",
    "hybrid_per_s_1_threads": "hybrid searches a second, 1 thread",
    "hybrid_per_s_4_threads": "the same, 4 threads",
    "settle_s": "both indexes built after the import, s",
    "first_answer_s": "new process: first hybrid answer, s",
    "index_load_s": "new process: both indexes loaded, s",
    "rss_mb": "new process: memory after 50 searches, MB",
    "rss_before_mb": "the same before the first one, MB",
    "disk_mb": "disk of the product, MB",
    "text_mb": "the texts alone, MB",
    "vectors_mb": "the vectors alone, MB",
    "fts5_disk_mb": "disk of raw FTS5, MB",
    "sqlite_vec_disk_mb": "disk of sqlite-vec, MB",
}


def flat(result: Result) -> Result:
    """Ratios and the figures of mem0 beside the rest, under one name each."""
    peer = {f"mem0_{name}": value for name, value in result.get("mem0", {}).items()}
    found = {**result, **result["ratios"], **peer}
    if "mem0_search_p50_ms" in found:
        ratio = found["mem0_search_p50_ms"] / found["hybrid_p50_ms"]
        found["mem0_over_hybrid"] = round(ratio, 2)
    return found


def table(results: Sequence[Result]) -> list[str]:
    """Lines of a Markdown document: searches, ratios, the rest; one column a size."""
    rows = [flat(result) for result in results]
    lines = [*_grid("search, p50 / p95 / p99 ms", rows, SEARCHES, _times), ""]
    lines += [*_grid("processor time of it, p50 ms", rows, SEARCHES, _cpu), ""]
    lines += [*_grid("ratio of p50", rows, RATIOS, _figure), ""]
    lines += _grid("what", rows, OTHERS, _figure)
    absent = {f"{name}: {why}" for row in rows for name, why in _absent(row)}
    return lines + [f"\nNot measured: {line}." for line in sorted(absent)]


def machine(result: Result) -> str:
    """One sentence about where and when it was measured."""
    found = dict(result["machine"])
    what = f"{found.pop('cores')} cores of {found.pop('cpu')}, {found.pop('memory_gb')} GB"
    load = found.pop("load_1m")
    versions = ", ".join(f"{name} {value}" for name, value in found.items())
    day = datetime.now(UTC).date().isoformat()
    return f"Measured on {day}: {what}; {versions}. Load of the machine at the end: {load}."


def write(path: Path, results: Sequence[Result]) -> None:
    """Put the tables into a document, between its two marks, or at its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    body = "\n".join([BEGIN, machine(results[-1]), "", *table(results), END])
    before, found, rest = text.partition(BEGIN)
    after = rest.partition(END)[2] if found else "\n"
    path.write_text(f"{before if found else text.rstrip() + chr(10) * 2}{body}{after}", "utf-8")


def _grid(title: str, rows: Sequence[Result], names: dict[str, str], cell: Any) -> Iterable[str]:
    yield f"| {title} | " + " | ".join(f"{row['passages']:,}" for row in rows) + " |"
    yield "|---|" + "---|" * len(rows)
    for name, label in names.items():
        cells = [cell(row, name) for row in rows]
        if any(cells):
            yield f"| {label} | " + " | ".join(text or "–" for text in cells) + " |"


def _times(row: Result, name: str) -> str:
    found = [row.get(f"{name}_{share}_ms") for share in ("p50", "p95", "p99")]
    return " / ".join(_short(value) for value in found if value is not None)


def _cpu(row: Result, name: str) -> str:
    return _figure(row, f"{name}_cpu_p50_ms")


def _figure(row: Result, name: str) -> str:
    return _short(row[name]) if name in row else ""


def _short(value: float) -> str:
    """Three figures, no more than were measured."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "0"


def _absent(row: Result) -> Iterable[tuple[str, str]]:
    yield from row["absent"].items()
    if "mem0_absent" in row:
        yield "mem0", row["mem0_absent"]
