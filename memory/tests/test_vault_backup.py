"""Open vaults in backups: their passages are back, and one of an earlier version is taken in."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from engine.types import Mode
from memory.backup.restore import restore
from memory.backup.write import Contents, write
from memory.models import Job, Passage, Vault
from memory.principal import Principal
from memory.services import embedding
from memory.services import settings as studio_settings
from memory.services.vaults import searching
from memory.tests.asking import days_ago
from memory.tests.conftest import Work
from memory.tests.vaults import fill, opened, query

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def library(alice: Principal, work: Work) -> Vault:
    made = opened(alice)
    fill(alice, made)
    work()
    return made


def first(principal: Principal, mode: Mode = Mode.HYBRID) -> str:
    """The title of the best chunk."""
    found = searching.find(principal, query(Vault.objects.get(), "refund policy", mode=mode)).found
    return found[0].chunk.passage.title


def older(path: Path, made: Path) -> None:
    """A backup as the version before wrote it: without the table of chunks."""
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(made, "w") as cut:
        manifest = json.loads(whole.read("manifest.json"))
        kept = [m for m in manifest["members"] if m["table"] != "memory.VaultChunk"]
        for member in kept:
            cut.writestr(member["name"], whole.read(member["name"]))
        cut.writestr("manifest.json", json.dumps({**manifest, "members": kept}))


@pytest.mark.parametrize("contents", [Contents(), Contents(with_vectors=True)])
def test_an_open_vault_is_found_at_once_after_a_restore(
    contents: Contents, alice: Principal, library: Vault, tmp_path: Path
) -> None:
    write(tmp_path / "b.zip", contents)
    done = restore(tmp_path / "b.zip", replace=True)
    assert done.waiting == (0 if contents.with_vectors else 3)
    assert not Vault.objects.get().needs_index
    assert first(alice, Mode.KEYWORD) == first(alice) == "Refund policy"


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_backup_of_an_earlier_version_is_taken_in(
    is_remote: bool, alice: Principal, library: Vault, tmp_path: Path, work: Work
) -> None:
    if is_remote:
        endpoint = {"customBaseUrl": "http://127.0.0.1:9/v1", "customModelId": "m"}
        studio_settings.update(Principal("system", "test", frozenset({"manage"})), endpoint)
    Passage.objects.all().delete()
    write(tmp_path / "new.zip")
    older(tmp_path / "new.zip", tmp_path / "old.zip")
    restore(tmp_path / "old.zip", replace=True)
    vault = Vault.objects.get()
    assert vault.needs_index
    assert vault.embedding_model == ("multilingual-e5-small" if is_remote else "")
    assert first(alice) == "Refund policy"
    Job.objects.update(finished_at=days_ago(1))
    embedding.resume()
    work()
    assert Passage.objects.filter(vault_id=vault.pk).count() == 3
    assert first(alice) == "Refund policy"
