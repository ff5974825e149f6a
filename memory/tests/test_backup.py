"""Backup and restore: everything is back, in an empty database or over what is there."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import ForeignKey

from engine.providers.spec import ProviderSpec
from engine.types import Mode
from memory import secretbox, vault_wiring
from memory.backup import manifest as manifests
from memory.backup.errors import BackupError
from memory.backup.restore import Restored, restore
from memory.backup.tables import INDEXES, LEFT_OUT, TABLES, Table
from memory.backup.write import Contents, write
from memory.clock import now
from memory.models import (
    ApiKey,
    AuditEntry,
    BackendCopy,
    ExtractionDay,
    InjectionDay,
    Job,
    Memory,
    MemoryUse,
    Passage,
    RetrievalCount,
    Trace,
    Vault,
    VectorIndex,
    VectorMark,
    Webhook,
    WebhookDelivery,
)
from memory.principal import SYSTEM, Principal
from memory.services import access, compaction, embedding, memories, providers, signin
from memory.services import settings as studio_settings
from memory.services.extraction import inbox, learning
from memory.services.vaults import assets, choosing, grants, lifecycle, searching
from memory.services.webhooks import hooks
from memory.tests import vaults
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.django_db(transaction=True)
Rows = dict[str, list[list[Any]]]


@pytest.fixture
def full(alice: Principal, manager: Principal, remember: Remember, work: Work) -> Principal:
    """Alice; every table of a backup holds something, and every column of it."""
    signin.set_password(User.objects.get().pk, "correct horse battery")
    User.objects.update(last_login=now(), first_name="S", last_name="T", email="s@example.org")
    ApiKey.objects.update(expires_at=now() + timedelta(days=9), daily_tokens=5000)
    ApiKey.objects.filter(name="Default").update(revoked_at=now(), last_used_at=now())
    studio_settings.update(manager, {"customApiKey": "s3cret", "maxTokens": 700})
    remember(alice, "likes tea 茶 🍵", key="tea", metadata={"title": "Tea", "深": [1, None, 0.5]})
    session = {"session_id": "s-1", "expires_at": now() + timedelta(days=9)}
    remember(alice, "said goodbye", key="bye", occurred_at=days_ago(3), **session)
    for place in range(2):
        remember(alice, f"old fact {place}.", key=f"old:{place}", created_at=days_ago(40))
    request = compaction.CompactRequest(owner="alice", older_than_days=30)
    undone = compaction.run_now(manager, request).compactions[0]
    memories.update(alice, Memory.objects.get(key="tea").pk, {"content": "likes green tea 茶 🍵"})
    memories.update(alice, Memory.objects.get(key="bye").pk, {"content": "said good night"})
    MemoryUse.objects.create(memory=Memory.objects.get(key="tea"), last_accessed_at=now())
    memories.delete(alice, remember(alice, "to the trash", key="trash").pk)
    work()
    ask(alice, "tea")
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    work()
    compaction.undo(manager, str(undone.pk))
    compaction.run_now(manager, request)
    work()
    RetrievalCount.objects.get_or_create(owner_id=alice.owner, day=now().date())
    Job.objects.update(owner_id=alice.owner, lease_until=now())
    waiting = {"pending": "update", "attempts": 2, "error": "timeout", "due_at": now()}
    tea = Memory.objects.get(key="tea").pk
    BackendCopy.objects.create(backend="notes", memory_id=tea, own_id="tea.md", **waiting)
    providers.create(manager, ProviderSpec("openai", "openai", api_key="sk-s3cret"))
    for add in (_with_webhook, _chat, _fill_vaults):
        add(alice)
    return alice


def _with_webhook(alice: Principal) -> None:
    """A webhook that fails, with an event that was given up."""
    draft = hooks.WebhookDraft("app", "https://receiver.example/", ("job.finished",))
    hook = hooks.create(alice, draft)[0]
    times = dict.fromkeys(("failing_since", "paused_until", "last_sent_at"), now())
    Webhook.objects.filter(pk=hook.pk).update(failures=9, last_error="http_500", **times)
    WebhookDelivery.objects.create(
        webhook=hook,
        event="memory.created",
        owner_id=alice.owner,
        items=[{"id": "1", "revision": 1}],
        count=1,
        state="failed",
        attempts=9,
        status_code=500,
        error_code="http_500",
        created_at=now(),
        due_at=now(),
        attempted_at=now(),
    )


def _chat(principal: Principal) -> None:
    owner = access.find(principal.name)
    InjectionDay.objects.create(owner=owner, day=now().date(), tokens=80)
    trace = Trace.objects.create(owner=owner, at=now(), text={"query": "茶?"}, session_id="s-1")
    ExtractionDay.objects.create(owner=owner, day=now().date(), tokens=80)
    turn = learning.Turn("Maybe I prefer 茶.", session="s-1", trace_id=trace.pk)
    item = learning.learn(principal, turn).waiting[0]
    inbox.decide(principal, item.pk, inbox.Decision("accept"))


def _fill_vaults(alice: Principal) -> None:
    """A vault of each kind; every column of their tables holds something."""
    for vault in (vaults.sealed(alice), vaults.opened(alice)):
        vaults.fill(alice, vault)
        name, asset = str(vault.uid), str(vault.assets.all()[0].pk)
        assets.revise(alice, name, asset, {"title": "題", "meta": {"tags": ["茶"]}})
        assets.delete(alice, name, asset)
    until = now() + timedelta(days=9)
    grants.give(alice, "notes", "Default", "reader", expires_at=until)
    Vault.objects.update(embedding_dim=256)
    choosing.update(SYSTEM, {"generationProviderModel": "openai/writer"})


def _rows(*tables: Table) -> Rows:
    return {table.label: list(table.rows()) for table in tables}


def _without_audit(rows: Rows) -> Rows:
    """The audit rows that backup and restore leave are not in the backup."""
    place = next(table for table in TABLES if table.label == "memory.AuditEntry")
    action = place.columns.index("action")
    kept = [r for r in rows["memory.AuditEntry"] if not str(r[action]).startswith("database.")]
    return {**rows, "memory.AuditEntry": kept}


def _back(path: Path) -> Restored:
    return restore(path, replace=True)


def _apart(work: Callable[[], object]) -> None:
    """Do it through a connection of its own, as another process would."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    thread.join()


def test_every_model_is_in_the_backup_or_left_out_for_a_reason() -> None:
    models = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    kept = {table.label for table in (*TABLES, INDEXES)}
    assert kept | set(LEFT_OUT) == models
    assert not kept & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_a_table_comes_after_those_that_it_refers_to() -> None:
    seen: set[str] = set()
    for table in (*TABLES, INDEXES):
        seen.add(table.label)
        keys = [entry for entry in table.fields if isinstance(entry, ForeignKey)]
        assert {entry.target_field.model._meta.label for entry in keys} <= seen


def test_the_version_in_the_manifest_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(django_settings.BASE_DIR) / "pyproject.toml").read_text())
    assert project["project"]["version"] == manifests.VERSION


def test_everything_is_back(full: Principal, tmp_path: Path) -> None:
    before = _without_audit(_rows(*TABLES))
    unset = {
        f"{table.label}.{column}"
        for table in TABLES
        for place, column in enumerate(table.columns)
        if all(row[place] is None for row in before[table.label])
    }
    assert unset == set(), "a column that no row of this test has"
    manifest = write(tmp_path / "b.zip")
    assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600
    Memory.objects.update(content="spoilt")
    done = _back(tmp_path / "b.zip")
    assert _without_audit(_rows(*TABLES)) == before
    assert done.counts == {table.label: manifest.rows_of(table.label) for table in TABLES}
    assert (done.is_older, done.keys) == (False, {})
    assert User.objects.get().check_password("correct horse battery")
    assert secretbox.open_sealed(studio_settings.get().custom_api_key) == "s3cret"


def test_the_services_of_vaults_are_back_with_their_keys(full: Principal, tmp_path: Path) -> None:
    before = vault_wiring.services()
    write(tmp_path / "b.zip")
    choosing.update(SYSTEM, {"generationProviderModel": None})
    _back(tmp_path / "b.zip")
    found = vault_wiring.services()
    assert found == before
    assert found.generation is not None and found.generation.has_key


def test_sealed_vaults_are_back_and_open_with_their_passphrase(
    full: Principal, tmp_path: Path
) -> None:
    Vault.objects.update(embedding_dim=None)
    write(tmp_path / "b.zip")
    assert b"Refund" not in (tmp_path / "b.zip").read_bytes()
    _back(tmp_path / "b.zip")
    vault = Vault.objects.get(is_sealed=True)
    assert not lifecycle.is_unlocked(vault)
    lifecycle.unlock(full, "notes", passphrase=vaults.PASSPHRASE)
    assert searching.find(full, vaults.query(vault)).found
    assert searching.find(full, vaults.query(Vault.objects.get(is_sealed=False))).found


def test_what_was_restored_is_found_by_words_at_once_and_by_meaning_after_embedding(
    full: Principal, tmp_path: Path, work: Work
) -> None:
    write(tmp_path / "b.zip")
    done = _back(tmp_path / "b.zip")
    assert done.waiting == Passage.objects.count()
    assert ask(full, "green tea", mode=Mode.KEYWORD) == ["likes green tea 茶 🍵"]
    assert not VectorIndex.objects.exists()
    Job.objects.update(finished_at=days_ago(1))
    assert embedding.resume() is True
    work()
    assert ask(full, "green tea", mode=Mode.VECTOR)[0] == "likes green tea 茶 🍵"


def test_with_vectors_nothing_is_embedded_again(
    full: Principal, tmp_path: Path, remember: Remember
) -> None:
    found = ask(full, "green tea", mode=Mode.VECTOR)
    waiting = remember(full, "no vector yet", key="new")
    indexes = _rows(INDEXES)
    manifest = write(tmp_path / "b.zip", Contents(with_vectors=True))
    assert len(manifest.vectors) == 2, "the active index, and the retired one"
    done = _back(tmp_path / "b.zip")
    assert done.vectors == sum(member.rows for member in manifest.vectors)
    assert (done.waiting, _rows(INDEXES)) == (1, indexes)
    assert VectorMark.objects.get().passage.memory_id == waiting.pk
    VectorMark.objects.all().delete()
    assert ask(full, "green tea", mode=Mode.VECTOR) == found
    assert done.counts["memory.VectorIndex"] == 2


def test_new_rows_take_free_numbers_after_a_restore(
    full: Principal, tmp_path: Path, remember: Remember
) -> None:
    write(tmp_path / "b.zip", Contents(with_vectors=True))
    _back(tmp_path / "b.zip")
    remember(full, "stored after the restore", key="after")
    assert ask(full, "stored after", mode=Mode.KEYWORD)[0] == "stored after the restore"


def test_a_database_that_holds_something_is_only_erased_when_asked_to(
    full: Principal, tmp_path: Path
) -> None:
    write(tmp_path / "b.zip")
    before = _rows(*TABLES)
    with pytest.raises(BackupError, match=r"holds 1 users, 3 api keys.*--replace erases them"):
        restore(tmp_path / "b.zip")
    assert _rows(*TABLES) == before


def test_a_backup_replaces_the_earlier_one_only_when_it_is_complete(
    full: Principal, tmp_path: Path
) -> None:
    write(tmp_path / "b.zip")
    earlier = (tmp_path / "b.zip").read_bytes()

    def stop(name: str, _rows: int) -> None:
        if "Passage" in name:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "b.zip", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]
    assert (tmp_path / "b.zip").read_bytes() == earlier
    assert not connection.in_atomic_block
    Memory.objects.update(content="a write works again")


def test_a_folder_that_is_not_there_is_one_sentence(full: Principal, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"Cannot write to .*no such file or directory"):
        write(tmp_path / "absent" / "b.zip")


def test_a_backup_sees_one_moment_and_keeps_no_writer_waiting(
    full: Principal, tmp_path: Path
) -> None:
    count = Memory.objects.count()

    def write_meanwhile(name: str, _rows: int) -> None:
        if "ApiKey" in name:
            _apart(lambda: Memory.objects.filter(key="tea").update(content="too late"))
            _apart(lambda: AuditEntry.objects.all().delete())

    manifest = write(tmp_path / "b.zip", progress=write_meanwhile)
    assert Memory.objects.get(key="tea").content == "too late"
    assert manifest.rows_of("memory.Memory") == count
    assert manifest.rows_of("memory.AuditEntry") > 0
    _back(tmp_path / "b.zip")
    assert Memory.objects.get(key="tea").content == "likes green tea 茶 🍵"


def test_jobs_that_have_not_ended_are_left_out(
    full: Principal, tmp_path: Path, remember: Remember
) -> None:
    remember(full, "ordered a job", key="job")
    assert Job.objects.filter(state="queued").count() == 1
    manifest = write(tmp_path / "b.zip")
    assert manifest.rows_of("memory.Job") == Job.objects.exclude(state="queued").count()
    _back(tmp_path / "b.zip")
    assert not Job.objects.filter(state="queued").exists()
