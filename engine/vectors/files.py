"""A base on disk: arrays and graphs in files that are mapped, not read, at a start.

A folder for each state, ``<index>-<token>``, written beside and renamed when complete. Every file
has its size and checksum in the manifest: a graph that is damaged would otherwise bring the
process down. What does not fit is as good as absent; the files can always be made again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from engine.columns.table import Table
from engine.types import Vector
from engine.vectors.base import Base, Words, base_of
from engine.vectors.centres import SHARE, Centres
from engine.vectors.graph import Graph, read
from engine.vectors.segment import Segment

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SCOPE: Final = ("passage", "owner", "vault", "retained", "expires", "flags", "type", "session")
VECTORS: Final = ("serial", "language", "matrix", "coarse", "step")
BLOCK: Final = 1 << 22


class IndexFiles:
    """The files of one index in a folder that several processes may share."""

    def __init__(self, folder: Path, *, index_id: int, signature: str) -> None:
        self._folder = folder
        self._index_id = index_id
        self._signature = signature

    def place(self, token: str) -> Path:
        """The folder of a state."""
        return self._folder / f"{self._index_id}-{token}"

    @contextmanager
    def building(self) -> Iterator[bool]:
        """Hold the right to build; False when another process holds it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{self._index_id}.lock").open("wb") as handle:
            yield _lock(handle)

    @contextmanager
    def draft(self, token: str) -> Iterator[Path]:
        """A new folder to write a state into, gone unless it is complete. For use while
        ``building``."""
        for left in self._folder.glob(f"{self._index_id}-*.draft"):
            shutil.rmtree(left, ignore_errors=True)
        made = self._folder / f"{self._index_id}-{token}.draft"
        made.mkdir()
        try:
            yield made
        finally:
            # What a full disk has no room for must not go on filling it.
            shutil.rmtree(made, ignore_errors=True)

    def write(self, draft: Path, base: Base, words: Words) -> None:
        """Complete a draft; ``base.rows.matrix`` may already be its file."""
        scope, rows = base.rows.scope, base.rows
        for name in SCOPE:
            np.save(draft / f"{name}.npy", getattr(scope, name))
        for name in VECTORS:
            if not (draft / f"{name}.npy").exists():
                np.save(draft / f"{name}.npy", getattr(rows, name))
        np.save(draft / "shift.npy", base.shift)
        graphs = [self._write_graph(draft, key, graph) for key, graph in base.graphs.items()]
        manifest = {
            "format": FORMAT,
            "signature": self._signature,
            "share": SHARE,
            "rows": len(rows),
            "position": base.position,
            "next_serial": base.next_serial,
            "small_end": base.small_end,
            "types": list(words.types),
            "sessions": list(words.sessions),
            "languages": list(words.languages),
            "graphs": graphs,
            "files": {path.name: _fingerprint(path) for path in sorted(draft.iterdir())},
        }
        (draft / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        draft.rename(self.place(base.token))

    def read(self, token: str) -> tuple[Base, Words] | None:
        """A state as it was written, mapped; None when it is not there whole."""
        place = self.place(token)
        try:
            manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
            known = (manifest["format"], manifest["signature"], manifest["share"])
            if known != (FORMAT, self._signature, SHARE):
                return None
            files: Mapping[str, list[int]] = manifest["files"]
            if any(_fingerprint(place / name) != wanted for name, wanted in files.items()):
                return None
            return self._read(place, manifest, token)
        except (OSError, ValueError, KeyError, TypeError, ImportError):
            return None

    def forget_others(self, token: str) -> None:
        """Remove the files of every other state; processes that have them mapped keep them."""
        for found in self._folder.glob(f"{self._index_id}-*"):
            if found != self.place(token) and found.suffix != ".draft":
                shutil.rmtree(found, ignore_errors=True)

    def forget_all(self) -> None:
        """Remove the files of every state."""
        self.forget_others("")

    def _read(self, place: Path, manifest: Mapping[str, Any], token: str) -> tuple[Base, Words]:
        def array(name: str) -> Any:
            return np.load(place / f"{name}.npy", mmap_mode="r")

        count = int(manifest["rows"])
        columns = {name: np.array(array(name)) for name in SCOPE}
        scope = Table(**columns, alive=np.ones(count, np.bool_))
        vectors = {name: np.asarray(array(name)) for name in VECTORS}
        rows = Segment(scope=scope, **vectors, spread=np.ones(count, np.float32))
        small_end = int(manifest["small_end"])
        base = base_of(
            rows,
            np.array(array("shift")),
            large=count + 1,
            next_serial=int(manifest["next_serial"]),
        )
        dim = base.shift.size
        graphs = {
            int(entry["block"]): self._read_graph(place, entry, dim) for entry in manifest["graphs"]
        }
        words = Words(
            *(
                {word: code for code, word in enumerate(manifest[name])}
                for name in ("types", "sessions", "languages")
            )
        )
        position = int(manifest["position"])
        whole = replace(base, small_end=small_end, graphs=graphs, position=position, token=token)
        return whole, words

    def _write_graph(self, draft: Path, number: int, graph: Graph) -> Mapping[str, Any]:
        graph.save(draft / f"graph-{number}.usearch")
        means = graph.centres.stored if graph.centres is not None else {}
        if means:
            np.save(draft / f"graph-{number}-means.npy", np.stack(list(means.values())))
        return {
            "block": number,
            "covered": graph.covered,
            "means": list(means) if graph.centres is not None else None,
        }

    def _read_graph(self, place: Path, entry: Mapping[str, Any], dim: int) -> Graph:
        number, names = int(entry["block"]), entry["means"]
        centres = None
        if names is not None:
            stored: dict[str, Vector] = {}
            if names:
                rows = np.load(place / f"graph-{number}-means.npy")
                stored = dict(zip(names, rows, strict=True))
            centres = Centres(stored)
        index = read(place / f"graph-{number}.usearch", dim)
        return Graph(index, centres, int(entry["covered"]))


def _fingerprint(path: Path) -> list[int]:
    """Size and CRC-32 of a file."""
    size = checksum = 0
    with path.open("rb") as handle:
        while block := handle.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
            size += len(block)
    return [size, checksum]


def _lock(handle: IO[bytes]) -> bool:
    """Take the lock of an open file until it is closed; False when another process has it."""
    try:
        import fcntl
    except ImportError:
        return True
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def remove_orphans(folder: Path, index_ids: Collection[int]) -> None:
    """Remove the files of indexes that are no more (for a start, before anything is opened)."""
    for found in folder.glob("*-*"):
        number = found.name.partition("-")[0]
        if number.isdigit() and int(number) not in index_ids:
            shutil.rmtree(found, ignore_errors=True)
