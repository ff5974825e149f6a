"""The list of known local models. ``catalogue.json`` is the one place that names their files.

A studio may know more: ``catalogue.json`` in its models folder has the same form. Everything is
checked when it is read; a file without its size and SHA-256 is never accepted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from engine.embed.prompts import Prompts
from engine.errors import EmbeddingFailed

NAME = "catalogue.json"

KINDS = frozenset({"repack", "onnx", "static", "use", "cross-encoder"})
POOLINGS = frozenset({"mean", "cls", "model"})
SCRIPTS = frozenset({"zh", "ja", "ko", "latin", "cyrillic", "arabic", "other"})
ROLES = frozenset({"model", "data", "tokenizer", "other"})
HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file a model is made of, and what it must hash to.

    ``path`` is inside the package's module, or inside the hub's repository when ``package`` is
    empty. ``role`` is ``model``, ``data`` (beside the model), ``tokenizer`` or ``other``.
    """

    path: str
    bytes: int
    sha256: str
    role: str = "other"
    package: str = ""
    version: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        _require(all(part not in ("", ".", "..") for part in parts), "a file's path")
        _require("\\" not in self.path and ":" not in self.path, "a file's path")
        _require(type(self.bytes) is int and self.bytes > 0, "a file's size")
        _require(len(self.sha256) == 64 and set(self.sha256) <= HEX, "a file's SHA-256")
        _require(self.role in ROLES, "a file's role")
        _require(bool(self.package) == bool(self.module), "a file's package")


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms that have to be accepted before a model is installed, and the notice they ask for."""

    url: str
    notice: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model.

    ``kind``: ``repack`` (made from a package's weights), ``onnx`` (sentence encoder), ``static``
    (model2vec layout), ``use``, ``cross-encoder``. ``pooling``: ``mean``, ``cls``, or ``model``
    when the graph pools itself. ``dimensions``: every length a vector may be cut to, longest
    first; empty for a cross-encoder. ``max_tokens`` None means no limit. ``scripts`` are the
    values of ``engine.text.language`` that the model has learnt. ``revision`` names the weights
    and, for a repacked model, the version of the repack; it is part of the signature.
    ``batch_texts``: 1 for weights whose activations are quantised together, because there a text
    would change its neighbours. ``is_centred``: subtract the mean of each language before
    comparing. ``floor``: the cosine below which nothing is relevant; None when not measured.
    """

    id: str
    kind: str
    title: str
    dimensions: tuple[int, ...]
    max_tokens: int | None
    languages: tuple[str, ...]
    scripts: frozenset[str]
    licence: str
    revision: str
    files: tuple[ModelFile, ...]
    prompts: Prompts = field(default_factory=Prompts)
    pooling: str = "model"
    repository: str = ""
    card: str = ""
    terms: Terms | None = None
    batch_texts: int = 16
    is_centred: bool = False
    floor: float | None = None

    def __post_init__(self) -> None:
        _require(bool(self.id) and set(self.id) <= _ID, "an id")
        _require(self.kind in KINDS, "a kind")
        _require(self.pooling in POOLINGS, "a pooling")
        _require(bool(self.scripts) and self.scripts <= SCRIPTS, "scripts")
        _require(bool(self.files and self.revision and self.licence), "files and their licence")
        _require(bool(self.repository) != self.is_packaged, "either a repository or packages")
        _require(self.is_packaged or _is_commit(self.revision), "a full revision of the repository")
        _require(bool(self.dimensions) != (self.kind == "cross-encoder"), "dimensions")
        falling = sorted(set(self.dimensions), reverse=True)
        _require(list(self.dimensions) == falling, "dimensions, longest first")
        _require(self.floor is None or -1 <= self.floor <= 1, "a floor")

    @property
    def dimension(self) -> int:
        """The full length of a vector."""
        return self.dimensions[0]

    @property
    def is_packaged(self) -> bool:
        """Whether packages carry the files, so that nothing has to be installed."""
        return all(file.package for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(file.bytes for file in self.files)

    def file(self, role: str) -> ModelFile:
        """The one file of a role. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
        for file in self.files:
            if file.role == role:
                return file
        raise EmbeddingFailed(f"The model has no {role} file.", code="model_load_failed")


_ID = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")


def entries(models_dir: Path | None = None) -> tuple[ModelEntry, ...]:
    """Every known model: those of the product, then those of the studio's own list.

    Raises ``EmbeddingFailed`` (``model_load_failed``) when that list cannot be read.
    """
    own = models_dir / NAME if models_dir is not None else None
    if own is None or not own.is_file():
        return _packaged()
    added = parse(own.read_text(encoding="utf-8"))
    known = {entry.id for entry in _packaged()}
    _require(known.isdisjoint(entry.id for entry in added), "ids of their own")
    return (*_packaged(), *added)


def find(model_id: str, models_dir: Path | None = None) -> ModelEntry:
    """The entry of a model. Raises ``EmbeddingFailed`` (``model_load_failed``) when unknown."""
    for entry in entries(models_dir):
        if entry.id == model_id:
            return entry
    raise EmbeddingFailed("This model is not in the catalogue.", code="model_load_failed")


def parse(text: str) -> tuple[ModelEntry, ...]:
    """The entries of a list. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
    try:
        found = tuple(_entry(raw) for raw in json.loads(text)["models"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EmbeddingFailed(
            f"The list of models cannot be read ({error}).", code="model_load_failed"
        ) from error
    _require(len({entry.id for entry in found}) == len(found), "ids of their own")
    return found


@cache
def _packaged() -> tuple[ModelEntry, ...]:
    return parse(files("engine.embed").joinpath(NAME).read_text(encoding="utf-8"))


def _entry(raw: dict[str, Any]) -> ModelEntry:
    shaped = dict(raw)
    for name in ("languages", "dimensions"):
        shaped[name] = tuple(raw.get(name, ()))
    shaped["scripts"] = SCRIPTS if raw["scripts"] == "all" else frozenset(raw["scripts"])
    shaped["files"] = tuple(ModelFile(**file) for file in raw["files"])
    if "prompts" in raw:
        shaped["prompts"] = Prompts(**raw["prompts"])
    if "terms" in raw:
        shaped["terms"] = Terms(**{**raw["terms"], "also": tuple(raw["terms"].get("also", ()))})
    return ModelEntry(**shaped)


def _is_commit(revision: str) -> bool:
    return len(revision) == 40 and set(revision) <= HEX


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise EmbeddingFailed(f"A model of the list needs {what}.", code="model_load_failed")
