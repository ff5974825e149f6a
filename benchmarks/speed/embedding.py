"""The product's fill job beside the bare model on the same batches of the same texts.

``python -m benchmarks.speed.embedding TEXTS`` prints one JSON object. Both work on one thread, the
product's choice; the bare run is tokenizer, ONNX Runtime and mean pooling, and stores nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
import numpy as np

from benchmarks.speed.progress import say
from benchmarks.speed.text import notes
from benchmarks.speed.timing import Took, timed
from engine import native

if TYPE_CHECKING:
    from memory.models import Job, VectorIndex

ROUNDS = 5


class Bare:
    """The model's own file, the library's tokenizer, and nothing around them."""

    def __init__(self, models_dir: Path) -> None:
        from engine.testing.reference_tokenizer import packaged_reference

        self._tokenizer = packaged_reference()
        self._tokenizer.enable_truncation(512)
        self._tokenizer.enable_padding(pad_id=self._tokenizer.token_to_id("<pad>"))
        onnxruntime = native.runtime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(
            str(next(models_dir.rglob("*.onnx"))), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: list[str]) -> Any:
        """Unit vectors of one batch."""
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encodings], np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        (hidden,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        pooled = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def main(count: int) -> None:
    """Measure and print."""
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from memory import wiring
    from memory.services import indexes, signin

    call_command("migrate", verbosity=0, interactive=False)
    signin.first_start()
    source = wiring.resolve_source().source
    index = indexes.target_index()
    if source is None or index is None:
        raise RuntimeError("there is no local model")
    say("loading the model")
    health = source.health()
    if not health.available:
        raise RuntimeError(health.reason)
    bare = Bare(Path(settings.MEMORY_STUDIO_HOME) / "models")
    bare.embed(["passage: warm"])
    print(json.dumps({"model": source.model, **_rounds(bare, index, count)}))


def _rounds(bare: Bare, index: VectorIndex, count: int) -> dict[str, float]:
    """Both in turn, each first every other time."""
    made = [note.record for block in notes(count) for note in block]
    per_round = max(1, len(made) // ROUNDS)
    product: list[Took] = []
    alone: list[Took] = []
    for number in range(ROUNDS):
        records = made[number * per_round : (number + 1) * per_round]
        job, batches = _waiting(records, index)
        steps = [(product, lambda j=job: _fill(j)), (alone, lambda b=batches: _embed(bare, b))]
        for times, work in steps if number % 2 else reversed(steps):
            times.append(timed(work))
        say(f"{(number + 1) * per_round} of {count} texts")
    walls = [b.wall / p.wall for b, p in zip(alone, product, strict=True)]
    cpus = [b.cpu / p.cpu for b, p in zip(alone, product, strict=True)]
    return {
        "texts": per_round * ROUNDS,
        "product_per_s": round(1000 * per_round / statistics.median(t.wall for t in product), 2),
        "bare_per_s": round(1000 * per_round / statistics.median(t.wall for t in alone), 2),
        "product_over_bare": round(statistics.median(walls), 3),
        "product_over_bare_cpu": round(statistics.median(cpus), 3),
    }


def _waiting(records: list[dict[str, Any]], index: VectorIndex) -> tuple[Job, list[list[str]]]:
    """Import records; the job that embeds them, and the prompts of its batches."""
    from engine.embed import catalogue
    from engine.text.template import embedded_text
    from engine.types import Purpose
    from memory.models import Job
    from memory.passage_reader import PassageReader
    from memory.principal import SYSTEM
    from memory.services import embedding, exchange

    exchange.import_records(SYSTEM, records, owner=None)
    ids = list(index.marks.order_by("passage_id").values_list("passage_id", flat=True))
    rows = PassageReader().load(ids)
    prompts = catalogue.find(index.model).prompts
    texts = [
        prompts.apply(embedded_text(rows[pk].title, rows[pk].body), purpose=Purpose.DOCUMENT)
        for pk in ids
    ]
    size = embedding.BATCH
    job = Job.objects.get(dedupe_key=embedding.DEDUPE, state__in=Job.ACTIVE)
    return job, [texts[start : start + size] for start in range(0, len(texts), size)]


def _fill(job: Job) -> None:
    from memory import jobs
    from memory.services import embedding

    jobs.run(job.pk, {"reindex": embedding.fill}, role="command")
    job.refresh_from_db()
    if job.state != type(job).State.SUCCEEDED:
        raise RuntimeError(f"the texts could not be embedded: {job.error_code} {job.message}")


def _embed(bare: Bare, batches: list[list[str]]) -> None:
    for texts in batches:
        bare.embed(texts)


if __name__ == "__main__":
    main(int(sys.argv[1]))
