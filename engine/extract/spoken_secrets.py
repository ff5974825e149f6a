"""Secrets as people say them in passing: "my password hunter2", "the door code is 4471",
"I use hunter2 as my password", a phrase of words, 门禁码是4471.

What is told without a verb, or as the thing that is used, has to hold a digit; a phrase has to be
four words or more, none of them a word that only joins others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

Span = tuple[int, int]

_WORD: Final = r"p(?:ass|[a@4][s$5]{2})w[o0]rd|passwort|passcode|passwd|pwd|pw|pass"
_MIXED: Final = r"""(?=[^\s"'`,;]*\d)(?=[^\s"'`,;]*[A-Za-z])[^\s"'`,;]{4,200}"""
_DIGITS: Final = r"\d[\d -]{2,18}\d"
_IS: Final = r"\s*(?:[:=]|\bis\b|\bist\b|\bwas\b|['’]s\b)\s*(?:now\s+|still\s+)?[\"'`]?"
_WITH_DIGIT: Final = (
    re.compile(rf"\b(?:{_WORD})\b(?:{_IS}|\s+)({_MIXED})", re.IGNORECASE),
    re.compile(
        rf"\b(?:door|gate|garage|access|entry|alarm|lock|safe|security|backup|recovery|unlock|sim"
        rf"|puk|2fa|mfa|verification|one-time)[ -]code{_IS}({_DIGITS}|{_MIXED})",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:security|secret)\s+answer\s*(?:[:=]|\bis\b)\s*"
        r"(?!(?:not|too|still|the|in|on|wrong|lost|forgotten|unknown|required)\b)([^\s,;]{3,200})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:use|uses|used|using|chose|set)\s+({_MIXED})\s+(?:as|for)\s+(?:[\w']+\s+){{0,3}}?"
        rf"(?:{_WORD}|pin)\b(?!\s*(?:manager|vault|app|generator))",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:login|credentials?|username)\s*(?:\bis\b|\bare\b|:)\s*\S{1,80}\s*/\s*([^\s,;]{4,200})",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:密码|密碼|口令|门禁码|門禁碼|解锁码|取款码|激活码|パスワード|暗証番号|パスコード)"
        r"(?:[^\S\n]*(?:是|为|為|は|[:：=＝]))?[^\S\n]*((?=[!-~]*\d)[!-~]{4,200})"
    ),
    re.compile(
        r"(?:密码|密碼|口令|门禁码)\s*(?:是|为|為|[:：])\s*([〇零一二三四五六七八九]{4,20})"
    ),
    re.compile(
        r"用\s*((?=[!-~]*\d)[!-~]{4,200})\s*(?:来|來)?(?:作为|作為|作|做|当|當)(?:我的?)?"
        r"[^\s。，,]{0,6}(?:密码|密碼|口令)"
    ),
)
_PHRASE: Final = re.compile(
    rf"\b(?:{_WORD}|pass\s?phrase|(?:recovery|seed|mnemonic)(?:[ _-]phrase)?){_IS}"
    r"((?:[a-z]{3,12}[ \t]+){3,23}[a-z]{3,12})\b",
    re.IGNORECASE,
)
SHORTEST_PHRASE: Final = 4
_LETTERS: Final = re.compile("[a-z]+", re.IGNORECASE)
_JOIN = """
    the and for not too very that this with from when your our his her their its has have was were
    are will can should must need needs only also just than then them they you but all any more most
    because about into over under after before every each same like such what where which who how
    longer been being never always still required"""
_JOINING: Final = frozenset(_JOIN.split())


def spoken_secrets(text: str) -> Iterator[Span]:
    """Where a text tells a secret in words. Each span is that of the secret itself."""
    for pattern in _WITH_DIGIT:
        for found in pattern.finditer(text):
            yield found.span(1)
    for found in _PHRASE.finditer(text):
        words = list(_LETTERS.finditer(text, *found.span(1)))
        phrase = list(takewhile(lambda word: word[0].lower() not in _JOINING, words))
        if len(phrase) >= SHORTEST_PHRASE:
            yield found.start(1), phrase[-1].end()
