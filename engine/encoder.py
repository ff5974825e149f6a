"""What encoders share: a tokenizer, and an ONNX graph run in batches of texts of like length.

Embedding sources and cross-encoders both use it, and know nothing of one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engine import native
from engine.errors import Unavailable

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

BATCH_TEXTS = 16
BATCH_TOKENS = 2048
"""Padded tokens of one run: keeps a run short and its memory small when texts are long."""

PADDING = ("<pad>", "[PAD]")

Feed = dict[str, npt.NDArray[np.int64]]
Values = npt.NDArray[np.float32]
Mask = npt.NDArray[np.int64]


Marked = tuple[str, int]
"""A prompt, and where in it the text itself begins."""


class Tokens(Protocol):
    """The tokens of one text, or of a pair of texts, special ones included."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def type_ids(self) -> list[int]: ...


class HubTokenizer:
    """A ``tokenizer.json`` as the hub's repositories have it. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        # The file may ask for padding to a fixed length, which costs time for nothing.
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
        self._tokenizer = tokenizer
        found = (tokenizer.token_to_id(name) for name in PADDING)
        self.pad: int = next((place for place in found if place is not None), 0)

    @classmethod
    def open(cls, path: Path, max_tokens: int) -> HubTokenizer:
        """Read the file; texts are cut after ``max_tokens``, special tokens kept.

        Raises whatever the library raises.
        """
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_file(str(path)), max_tokens)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """The tokens of texts."""
        encodings: list[Encoding] = self._tokenizer.encode_batch(list(texts))
        return encodings

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> list[Encoding]:
        """The tokens of pairs of texts."""
        encodings: list[Encoding] = self._tokenizer.encode_batch(list(pairs))
        return encodings

    def marked(self, prompts: Sequence[Marked]) -> list[tuple[Encoding, list[int]]]:
        """The tokens of prompts, and the places of those that carry the text itself."""
        encodings = self.encode([prompt for prompt, _ in prompts])
        return [
            (encoding, _after(encoding, start))
            for encoding, (_, start) in zip(encodings, prompts, strict=True)
        ]


def _after(encoding: Encoding, start: int) -> list[int]:
    """Places of the tokens that end behind ``start``, special ones left out."""
    return [
        place
        for place, (_, end) in enumerate(encoding.offsets)
        if not encoding.special_tokens_mask[place] and end > start
    ]


@dataclass(frozen=True, slots=True)
class EncoderFiles:
    """The files of an encoder; the graph finds its external data beside itself."""

    model: Path
    tokenizer: Path


class Encoder:
    """A loaded graph. Thread-safe.

    With ``threads=1`` each run works on the calling thread alone, so that a query does not wait
    for a bulk run of another thread.
    """

    def __init__(
        self, session: native.Session, *, pad: int, batch_texts: int = BATCH_TEXTS
    ) -> None:
        self._session = session
        self._pad = pad
        self._batch_texts = batch_texts
        self._inputs = {port.name for port in session.get_inputs()}
        self._outputs = [port.name for port in session.get_outputs()]

    @property
    def outputs(self) -> list[str]:
        """Names of what the graph gives."""
        return self._outputs

    def run(
        self, rows: Sequence[Tokens], output: str | None = None
    ) -> Iterator[tuple[list[int], Values, Mask]]:
        """Run everything in batches: places in ``rows``, values, mask of the real tokens.

        ``output`` None is the first one of the graph. Raises ``Unavailable`` when the graph fails:
        its tokenizer may be that of another model.
        """
        name = output or self._outputs[0]
        for places in self._batches([len(tokens.ids) for tokens in rows]):
            feed = self._feed([rows[place] for place in places])
            try:
                (values,) = self._session.run([name], self._known(feed))
            except Exception as error:  # the library raises its own, undocumented types
                raise Unavailable(f"The model cannot run ({type(error).__name__}).") from error
            yield places, values, feed["attention_mask"]

    def _known(self, feed: Feed) -> Feed:
        return {name: value for name, value in feed.items() if name in self._inputs}

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Places of texts of like length, so that little padding is computed."""
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lengths.__getitem__):
            longest = lengths[place]
            full = len(batch) >= self._batch_texts or (len(batch) + 1) * longest > BATCH_TOKENS
            if batch and full:
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _feed(self, rows: Sequence[Tokens]) -> Feed:
        longest = max(len(tokens.ids) for tokens in rows)
        # The 8-bit kernel takes rows in pairs and rounds a last single row otherwise; an even
        # length gives a text the same vector alone and in any batch.
        longest += longest % 2
        shape = (len(rows), longest)
        ids = np.full(shape, self._pad, np.int64)
        mask, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, tokens in enumerate(rows):
            size = len(tokens.ids)
            ids[row, :size] = tokens.ids
            mask[row, :size] = 1
            types[row, :size] = tokens.type_ids
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
