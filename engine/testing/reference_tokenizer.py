"""The library's tokenizer of multilingual-e5-small, to compare ours with."""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from engine.embed import catalogue, charsmap, e5_repack, e5_tokenizer, e5_weights, packaged
from engine.embed.e5_weights import Vocabulary


def packaged_reference() -> Tokenizer:
    """The one of the packaged model."""
    paths = packaged.locate(catalogue.find(e5_repack.ID))
    table = charsmap.table_of(paths[e5_tokenizer.SENTENCEPIECE].read_bytes())
    return reference(e5_weights.read_vocabulary(paths[e5_tokenizer.WEIGHTS]), table)


def reference(vocabulary: Vocabulary, charsmap: bytes) -> Tokenizer:
    """Its unigram pieces behind the nmt_nfkc rules, with the special tokens around a text."""
    pieces = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    bos, eos = vocabulary.pieces[vocabulary.bos], vocabulary.pieces[vocabulary.eos]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)]
    )
    return tokenizer
