"""The ``search`` analyzer: English stems, code-like words, and character pairs.

Traditional characters count as simplified ones. Japanese words by SudachiPy beside the pairs would
gain 0.6 points of nDCG@10 on Japanese paragraphs for a dictionary of 110 MB; alone they lose 0.3.

Text without spaces between words (Han, kana, Hangul, Thai and its kind) gives every pair of
neighbouring characters, and every Han character, so that any part of it can be found whatever a
dictionary thinks. jieba cuts only the query, to know its question words and its words of one
character: pairs plus those beat jieba's words on both sides (simplified Chinese, nDCG@10 99.1
against 98.6), and Japanese wants no Chinese dictionary at all.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Iterator
from functools import lru_cache

import Stemmer

from engine.text import jieba_words, variants
from engine.text.irregular import BASE_FORMS
from engine.text.normalize import (
    HAN,
    HANGUL,
    KANA,
    UNSPACED,
    fold,
    has_han,
    has_kana,
    has_unspaced,
    normalize,
    without_accents,
)
from engine.text.stopwords import CHINESE, ENGLISH, JAPANESE_PAIRS
from engine.text.variants import simplified

# Vowel signs and accents of scripts whose words Python's \w would tear apart.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(
    rf"(?:(?<![\w.])\.)?[\w{_MARKS}]+(?:[.\-'+#&@][\w{_MARKS}]+)*(?:\+\+|#)?|[{_SYMBOLS}]"
)
_PIECE = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_UNSPACED_RUN = re.compile(f"([{HAN}{KANA}{HANGUL}{UNSPACED}]+)")
_HAN = re.compile(f"[{HAN}]")
_KATAKANA = "\u30a1-\u30ff\u31f0-\u31ff"
_SCRIPT_RUN = re.compile(f"[{HAN}]+|[{_KATAKANA}]+|[^{HAN}{_KATAKANA}]+")
_HIRAGANA_ONLY = re.compile("[\u3041-\u309f]+")
_PUNCTUATION = str.maketrans("\u2019\u2018\u02bc\u2010\u2011\u2212", "'''---")
_TYPESET = re.compile(f"[{''.join(map(chr, _PUNCTUATION))}]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CLITIC = re.compile(r"'(?:s|re|ve|ll|d|m)$")
_NEGATED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "be"}

_stemmers = threading.local()


class SearchAnalyzer:
    """English stems, code-like words whole and in pieces, and pairs of unspaced characters."""

    name = "search"
    version = f"search-2/snowball-english-3.1/{variants.VERSION}"
    padding = 40

    def document_terms(self, text: str) -> list[str]:
        terms: list[str] = []
        for is_unspaced, part in _parts(text):
            if is_unspaced:
                terms.extend(_run_terms(part))
            else:
                terms.extend(_word_terms(part))
        return terms

    def query_terms(self, text: str) -> list[str]:
        terms = dict.fromkeys(_query_terms(text, frozenset(), frozenset(), frozenset()))
        kept = dict.fromkeys(_query_terms(text, ENGLISH, CHINESE, JAPANESE_PAIRS))
        return list(kept or terms)

    def comparable(self, text: str) -> str:
        return simplified(normalize(text))

    def words(self, text: str) -> list[str]:
        words = dict.fromkeys(_query_words(text, frozenset(), frozenset()))
        kept = dict.fromkeys(_query_words(text, ENGLISH, CHINESE))
        return list(kept or words)

    def needed_terms(self, words: list[str]) -> list[str]:
        needed: dict[str, None] = {}
        for word in words:
            needed.update(dict.fromkeys(_pairs(word) if has_unspaced(word) else (word,)))
        return list(needed)

    def phrase_terms(self, phrase: str) -> list[str]:
        needed: dict[str, None] = {}
        for is_unspaced, part in _parts(phrase):
            if is_unspaced:
                needed.update(dict.fromkeys(_pairs(part)))
            else:
                needed.update(dict.fromkeys(_word_terms(part, with_whole=False)))
        return list(needed)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of unspaced characters (True) and what lies between them (False), folded."""
    folded = fold(text)
    # Looking for such characters is many times faster than translating a text without any.
    if not folded.isascii() and _TYPESET.search(folded):
        folded = folded.translate(_PUNCTUATION)
    if folded.isascii():
        yield False, _THOUSANDS.sub("", folded)
        return
    for index, part in enumerate(_UNSPACED_RUN.split(folded)):
        if index % 2:
            yield True, simplified(part)
        elif part:
            yield False, _THOUSANDS.sub("", without_accents(part))


def _word_terms(
    text: str, stop: frozenset[str] = frozenset(), *, with_whole: bool = True
) -> Iterator[str]:
    """Stems of the words in spaced text; code-like words whole and in pieces."""
    for found in _WORD.findall(text):
        if found.isalnum():
            if found not in stop:
                yield stem(found)
            continue
        word = _without_clitic(found)
        pieces = _PIECE.findall(word)
        if with_whole and _is_code_like(word, pieces):
            yield word
        for piece in pieces:
            if piece not in stop:
                yield stem(piece)


def _without_clitic(word: str) -> str:
    """``caroline's`` as ``caroline``, ``don't`` as ``do``."""
    if word.endswith("n't"):
        base = word[:-3]
        return _NEGATED.get(base, base)
    return _CLITIC.sub("", word) if "'" in word else word


def _is_code_like(word: str, pieces: list[str]) -> bool:
    """Whether a word means more than its pieces: ``node.js``, ``c++``, ``gpt-4o``, an emoji.

    Hyphenated plain words do not: counted whole as well, they weigh too much.
    """
    if not pieces:
        return "_" not in word
    if len(pieces) == 1:
        return word != pieces[0]
    return "-" not in word or any(map(str.isdigit, word))


def _pairs(run: str) -> list[str]:
    """Pairs of neighbouring characters; a character alone is itself."""
    return list(map(operator.add, run, run[1:])) or [run]


def _run_terms(run: str) -> list[str]:
    """Terms of a document's unspaced run: pairs, Han characters, and the last character.

    So every single character begins some term, and a query of one can be a prefix.
    """
    if len(run) == 1:
        return [run]
    terms = _pairs(run)
    terms.extend(_HAN.findall(run))
    if not _HAN.match(run[-1]):
        terms.append(run[-1])
    return terms


def _query_terms(
    text: str, english: frozenset[str], chinese: frozenset[str], japanese: frozenset[str]
) -> Iterator[str]:
    for is_unspaced, part in _parts(text):
        if not is_unspaced:
            yield from _word_terms(part, english)
        elif len(part) == 1:
            yield from (part,) if part not in chinese else ()
        elif has_han(part) and not has_kana(part):
            yield from _chinese_query_terms(part, chinese)
        else:
            yield from (pair for pair in _pairs(part) if pair not in japanese)
            yield from _HAN.findall(part)


def _chinese_query_terms(run: str, stop: frozenset[str]) -> Iterator[str]:
    """Pairs that touch no stop word, and words of one character."""
    words = jieba_words.segmenter().known_words(run)
    is_stopped: list[bool] = []
    for word in words:
        is_stopped.extend([word in stop] * len(word))
    for index, pair in enumerate(_pairs(run)):
        if not (is_stopped[index] or is_stopped[index + 1]):
            yield pair
    yield from (word for word in words if len(word) == 1 and word not in stop)


def _query_words(text: str, english: frozenset[str], chinese: frozenset[str]) -> Iterator[str]:
    for is_unspaced, part in _parts(text):
        if not is_unspaced:
            yield from _word_terms(part, english)
        elif has_kana(part):
            yield from _japanese_words(part)
        elif has_han(part):
            words = jieba_words.segmenter().known_words(part)
            yield from (word for word in words if word not in chinese)
        else:
            yield part


def _japanese_words(run: str) -> list[str]:
    """Stretches of one script; hiragana between others is particles and endings."""
    stretches: list[str] = _SCRIPT_RUN.findall(run)
    content = [word for word in stretches if not _HIRAGANA_ONLY.fullmatch(word)]
    return content or stretches


@lru_cache(maxsize=131072)
def stem(word: str) -> str:
    """Snowball's English stem of a folded word; irregular forms first."""
    if not hasattr(_stemmers, "english"):
        # One for each thread: a Stemmer keeps a cache that is not made for sharing.
        _stemmers.english = Stemmer.Stemmer("english")
    return str(_stemmers.english.stemWord(BASE_FORMS.get(word, word)))
