"""The form of a text that rules read: as long as the text itself, so that places carry over.

Curly apostrophes are straight, full-width letters are narrow, traditional characters simplified.
What is not the speaker's own statement (code, logs, pasted conversations, quotations, text given to
be worked on) is blanked out with a character that no rule matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.text.normalize import has_han, has_kana
from engine.text.variants import simplified

BLANK: Final = "\ue000"
"""Stands for what was taken out; private use, so that nobody writes it."""

_WIDTH: Final = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
# These part clauses and sentences in Chinese and Japanese: they stay what they are.
_KEPT_WIDE: Final = "，。！？；：（）［］"
_FORMS: Final[dict[int, str]] = {
    **{code: narrow for code, narrow in _WIDTH.items() if chr(code) not in _KEPT_WIDE},
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4\u02b9\u2032"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033"), '"'),
    **dict.fromkeys(map(ord, "\u00a0\u3000\u2002\u2003\u2009\u202f"), " "),
    ord("\ufe52"): "。",
}
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")

_FENCE: Final = re.compile(
    r"^[ \t]*(?P<f>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*(?P=f)[ \t]*$|\Z)", re.M | re.S
)
_BLOCK: Final = re.compile(
    r"(?P<f>```).+?```|<(?P<tag>pre|code|script|style|blockquote|quote|document|context|log)\b"
    r"[^>]{0,200}>.*?(?:</(?P=tag)>|\Z)",
    re.S | re.I,
)
_INLINE: Final = re.compile(r"`([^`\n]{1,300})`")
_LINE: Final = re.compile(
    r"""^[ \t]*(?:
        >                                                   # quoted mail
      | (?:\#!|\$[ ]|>>>[ ]|\.\.\.[ ])                      # a prompt
      | \[?\d{4}-\d\d-\d\d[T ,]                             # a log with dates
      | \[?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\]?[ \t]+\S    # a log or chat with times
      | \[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|CRITICAL)\b
      | (?:user|assistant|system|human|ai|bot|me|customer|agent|用户|使用者|用戶|助手|客户|客服|系统
         |ユーザー|利用者|アシスタント|システム|お客様)[ \t]*[:：]
      | (?!(?:note|context|background|update|ps|fyi|info|preference|question|fact|reminder|edit
         |summary|answer|location|goal|also|disclaimer|warning|correction|intro|bio|remember|decision)\b)
        (?-i:[A-Z][a-z]{1,15})(?:[ ](?-i:[A-Z])\w{0,15})?[ \t]*:[ \t]+(?=I\b|I'|["]|my\b|we\b)
      | (?!备注|说明|背景|补充|提示|更新|另外|介绍|注意|记住|情况|需求|偏好|问题|决定|结论)
        [\u4e00-\u9fff]{2,4}[ ]?[:：](?=[ ]?["“「]?我)
      | (?://|/\*)[^\n]|\#[^\n]*\n(?=[ \t]*(?:def|class|import|from|function|const|var|async|@\w)\b)
      | Traceback[ ]\(most | File[ ]"|at[ ][\w.$]+\(        # a trace
      | [-+]{3}[ ][ab]/ | @@[ ] | diff[ ]--git              # a patch
      | [{}\[\]]|"[\w-]+"[ ]*:|</?[a-z][\w-]*[ >/]          # JSON, HTML
    )[^\n]*$""",
    re.M | re.I | re.X,
)
_LETTER: Final = re.compile(
    r"^(?:Dear\b[^\n]{1,60}|To whom it may concern,?)\n(?:[^\n]*\n){1,40}?"
    r"(?:(?:Kind |Best |Warm |Many )?(?:Regards|Wishes|Thanks)|Sincerely|Yours\b)[^\n]{0,20}"
    r"(?:\n[^\n]{0,40})?$",
    re.M | re.I,
)
"""A pasted letter, from its address to the name it is signed with."""
_INDENTED: Final = re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+")
_QUOTES: Final = re.compile(
    r"\"([^\"\n]{1,2000})\"|「([^」]{1,2000})」|『([^』]{1,2000})』|«([^»]{1,2000})»"
    r"|(?<![\w])'([^'\n]{2,300}?)'(?![\w])"
)
_SENTENCE_INSIDE: Final = re.compile(
    r"\bI\b|\bI'|\b(?:my|me|we)\b|[我俺僕私]|[。！？!?]|(?:です|ます|ない|だ)$|\.\s*$", re.I
)
_OF_SOMEBODY: Final = re.compile(r"\b(?:I|my|me|we|you)\b", re.I)
_FEW_WORDS: Final = 3
_MOST_QUOTED_WORDS: Final = 5
_MOST_QUOTED_CHARACTERS: Final = 14


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text, and the form of it that rules read."""

    text: str
    form: str
    blanked: tuple[tuple[str, str], ...] = field(default=())


def prepare(text: str, foreign: Sequence[re.Pattern[str]]) -> Prepared:
    """The form of a text; ``foreign`` say where text begins that was given to be worked on."""
    form = form_of(text)
    blanked: list[tuple[str, str]] = []
    for reason, start, end in _alien(form):
        form = _blank(form, start, end, blanked, reason)
    for start, end in [found.span(1) for found in _INLINE.finditer(form)]:
        if " " in form[start:end].strip():
            form = _blank(form, start, end, blanked, "code")
    for pattern in foreign:
        if found := pattern.search(form):
            form = _blank(form, found.end(), len(form), blanked, "given text")
    for found in list(_QUOTES.finditer(form)):
        inside = next(part for part in found.groups() if part is not None)
        if is_sentence(inside):
            form = _blank(form, *found.span(), blanked, "quotation")
    return Prepared(text, form, tuple(blanked))


def form_of(text: str) -> str:
    """The text with its characters made alike, as long as it was."""
    form = _INVISIBLE.sub(" ", text.translate(_FORMS))
    return _simplified(form) if has_han(form) else form


def is_sentence(quoted: str) -> bool:
    """Whether quotation marks hold what somebody says, and not just a name or a word."""
    words = quoted.split()
    if len(words) <= _FEW_WORDS and quoted.isascii() and not _OF_SOMEBODY.search(quoted):
        return False
    is_long = len(words) > _MOST_QUOTED_WORDS
    if not quoted.isascii():
        is_long = is_long or len(quoted) > _MOST_QUOTED_CHARACTERS
    return is_long or _SENTENCE_INSIDE.search(quoted) is not None


def _simplified(form: str) -> str:
    # Japanese keeps its own characters: a rule for it is written in them.
    if has_kana(form):
        return form
    changed = simplified(form)
    return changed if len(changed) == len(form) else form


def _alien(form: str) -> Iterator[tuple[str, int, int]]:
    for reason, pattern in (
        ("code", _FENCE),
        ("code", _BLOCK),
        ("code", _INDENTED),
        ("pasted", _LETTER),
        ("pasted", _LINE),
    ):
        for found in pattern.finditer(form):
            yield reason, *found.span()


def _blank(form: str, start: int, end: int, seen: list[tuple[str, str]], reason: str) -> str:
    piece = form[start:end]
    if piece.strip(BLANK + " \n\t"):
        seen.append((reason, piece.replace(BLANK, "").strip()[:200]))
    # Line ends stay: they part sentences.
    blank = "".join("\n" if character == "\n" else BLANK for character in piece)
    return form[:start] + blank + form[end:]
