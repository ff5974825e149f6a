"""Whole models from a mirror on this machine: the real packaged files, and small ones."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.embed import catalogue, installed, local, packaged
from engine.embed.catalogue import ModelEntry, ModelFile
from engine.embed.onnx import Use
from engine.errors import Cancelled
from engine.models_install.download import Downloader
from engine.models_install.errors import InstallFailed
from engine.models_install.install import CARD, NOTICE, Installer
from engine.models_install.lock import held
from engine.models_install.origin import DOWNLOADS, HUB, Origin
from engine.net.client import HttpClient
from engine.testing import tiny_models
from engine.testing.fake_provider import Answer, Provider, Request, serving
from engine.types import Purpose

COMMIT = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
SITE = f"/sentence-transformers/all-MiniLM-L6-v2/resolve/{COMMIT}/"


class Mirror:
    """A hub in the small: files by their path, ranges, and a card."""

    def __init__(self, provider: Provider) -> None:
        self.files: dict[str, bytes] = {"README.md": b"# A model\n"}
        self.provider = provider
        self.url = f"http://127.0.0.1:{provider.port}"
        provider.respond = self.answer

    def answer(self, request: Request) -> Answer:
        _, _, path = request.path.partition(f"/resolve/{COMMIT}/")
        content = self.files.get(path or request.path.removeprefix("/exact/"))
        if content is None:
            return Answer(404)
        start = int(request.headers.get("range", "bytes=0-")[len("bytes=") : -1])
        if not start:
            return Answer(200, content)
        told = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Answer(206, content[start:], {"Content-Range": told})

    def paths(self) -> list[str]:
        return [request.path for request in self.provider.requests]


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving() as provider:
        yield Mirror(provider)


@pytest.fixture
def installer(mirror: Mirror, tmp_path: Path) -> Iterator[Installer]:
    client = HttpClient(DOWNLOADS)
    yield Installer(tmp_path / "models", Downloader(client), Origin(hub=mirror.url))
    client.close()


@pytest.fixture
def entry(mirror: Mirror, tmp_path: Path) -> ModelEntry:
    """A small encoder that the mirror has."""
    tiny_models.write_encoder(tmp_path / "src/onnx/model.onnx")
    tiny_models.write_tokenizer(tmp_path / "src/tokenizer.json")
    known = catalogue.find("all-minilm-l6-v2")
    for file in known.files:
        mirror.files[file.path] = (tmp_path / "src" / file.path).read_bytes()
    files = tuple(pinned(file, mirror.files[file.path]) for file in known.files)
    return dataclasses.replace(known, files=files, dimensions=(tiny_models.DIM,))


def pinned(file: ModelFile, content: bytes) -> ModelFile:
    digest = hashlib.sha256(content).hexdigest()
    return dataclasses.replace(file, bytes=len(content), sha256=digest)


def test_an_installed_model_embeds(installer: Installer, entry: ModelEntry) -> None:
    heard: list[tuple[int, int, str]] = []
    done = installer.install(entry, progress=lambda *told: heard.append(told))
    assert done.downloaded == ("onnx/model.onnx", "tokenizer.json")
    assert done.has_card
    assert [told[0] for told in heard] == sorted(told[0] for told in heard)
    assert heard[-1] == (entry.bytes, entry.bytes, "tokenizer.json")
    assert installed.is_installed(installer.models_dir, entry)
    source = local.source(entry, installer.models_dir, Use("t1"))
    assert source.embed(["staging"], purpose=Purpose.QUERY).shape == (1, tiny_models.DIM)


def test_real_files_are_those_of_the_catalogue(installer: Installer, mirror: Mirror) -> None:
    package = catalogue.find("all-minilm-l6-v2-int8")
    paths = packaged.verified(package)
    files = tuple(
        dataclasses.replace(file, package="", version="", module="", path=Path(file.path).name)
        for file in package.files
    )
    for file in files:
        mirror.files[file.path] = paths[file.path].read_bytes()
    hub = dataclasses.replace(package, files=files, repository="a/b", revision=COMMIT)
    mirror.provider.script = [
        Answer(429, headers={"Retry-After": "0"}),
        Answer(200, mirror.files["model.onnx"][:9_000_000], breaks=True),
    ]
    installer.install(hub)
    source = local.source(hub, installer.models_dir, Use("t1"))
    assert source.embed(["tea"], purpose=Purpose.QUERY).shape == (1, 384)


def test_the_pinned_revision_is_asked_for(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    installer.install(entry)
    names = ["onnx/model.onnx", "tokenizer.json", "README.md"]
    assert mirror.paths() == [SITE + name for name in names]


def test_a_mirror_has_the_exact_files_under_its_base(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    origin = Origin(mirror=f"{mirror.url}/exact/")
    dataclasses.replace(installer, origin=origin).install(entry)
    assert mirror.paths()[0] == "/exact/onnx/model.onnx"


@pytest.mark.parametrize(
    ("mirror_url", "reason"),
    [
        pytest.param("http://mirror.example/x", "https_required", id="config-25"),
        ("https://user:secret@mirror.example/x", "credentials_in_url"),
        ("https://mirror.example/x?key=1", "query_in_url"),
        ("file:///etc", "scheme"),
        ("https://169.254.169.254/x", "blocked_address"),
    ],
)
def test_an_unusable_mirror_is_refused(mirror_url: str, reason: str) -> None:
    with pytest.raises(InstallFailed, match=reason) as caught:
        Origin(mirror=mirror_url).url(catalogue.find("potion-base-8m"), "model.safetensors")
    assert caught.value.code == "url_blocked"


def test_the_hub_is_asked_by_default() -> None:
    url = Origin().url(catalogue.find("all-minilm-l6-v2"), "onnx/model.onnx")
    assert url == f"{HUB}{SITE}onnx/model.onnx"


def test_installed_files_are_reused_without_a_request(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    installer.install(entry)
    mirror.provider.requests.clear()
    assert installer.install(entry).downloaded == ()
    assert mirror.paths() == []


def test_a_second_run_finishes_a_broken_one(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    tokenizer = mirror.files.pop("tokenizer.json")
    with pytest.raises(InstallFailed):
        installer.install(entry)
    assert not installed.is_installed(installer.models_dir, entry)
    mirror.files["tokenizer.json"] = tokenizer
    assert installer.install(entry).downloaded == ("tokenizer.json",)


def test_a_cancelled_installation_counts_as_none(installer: Installer, entry: ModelEntry) -> None:
    def stop(_done: int, _total: int, _path: str) -> None:
        raise Cancelled()

    with pytest.raises(Cancelled):
        installer.install(entry, progress=stop)
    assert not installed.is_installed(installer.models_dir, entry)


def test_a_model_of_another_revision_is_not_installed(
    installer: Installer, entry: ModelEntry
) -> None:
    installer.install(entry)
    newer = dataclasses.replace(entry, revision="0" * 40)
    assert not installed.is_installed(installer.models_dir, newer)


def test_terms_are_accepted_first_and_the_notice_is_kept(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    terms = catalogue.find("embeddinggemma").terms
    assert terms is not None
    model = dataclasses.replace(entry, terms=terms, licence="Gemma Terms of Use")
    with pytest.raises(InstallFailed, match=terms.url) as caught:
        installer.install(model)
    assert caught.value.code == "terms_not_accepted"
    assert mirror.paths() == []
    folder = installer.install(model, accepts_terms=True).folder
    notice = (folder / NOTICE).read_text()
    assert terms.notice in notice
    assert "prohibited_use_policy" in notice
    assert (folder / CARD).read_text() == "# A model\n"
    manifest = json.loads((folder / installed.MANIFEST).read_text())
    assert manifest["terms"] == terms.url
    assert manifest["files"]["tokenizer.json"] == entry.file("tokenizer").sha256


def test_a_card_that_cannot_be_had_is_no_failure(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    del mirror.files["README.md"]
    assert not installer.install(entry).has_card
    assert installed.is_installed(installer.models_dir, entry)


def test_two_installations_at_once_are_one_too_many(
    installer: Installer, entry: ModelEntry
) -> None:
    with held(installer.models_dir, entry.id), pytest.raises(InstallFailed) as caught:
        installer.install(entry)
    assert caught.value.code == "busy"


def test_a_folder_that_cannot_be_made_is_said(installer: Installer, entry: ModelEntry) -> None:
    installer.models_dir.write_text("a file")
    with pytest.raises(InstallFailed, match=r"cannot be written: \w") as caught:
        installer.install(entry)
    assert caught.value.code == "write_failed"


def test_a_model_that_does_not_fit_on_the_disk_is_not_begun(
    installer: Installer, entry: ModelEntry, mirror: Mirror
) -> None:
    huge = dataclasses.replace(entry.files[0], bytes=1 << 60)
    with pytest.raises(InstallFailed) as caught:
        installer.install(dataclasses.replace(entry, files=(huge, entry.files[1])))
    assert caught.value.code == "disk_full"
    assert mirror.paths() == []


def test_a_removed_model_is_gone(installer: Installer, entry: ModelEntry) -> None:
    folder = installer.install(entry).folder
    assert installer.remove(entry) >= entry.bytes
    assert not folder.exists()
    with pytest.raises(InstallFailed) as caught:
        installer.remove(entry)
    assert caught.value.code == "model_not_installed"


@pytest.mark.parametrize("act", [Installer.install, Installer.remove])
def test_a_packaged_model_is_neither_installed_nor_removed(
    installer: Installer, act: Callable[[Installer, ModelEntry], object]
) -> None:
    with pytest.raises(InstallFailed) as caught:
        act(installer, catalogue.find("use-multilingual"))
    assert caught.value.code == "packaged_model"
