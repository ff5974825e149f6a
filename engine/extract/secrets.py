"""Finds secrets in text: what must never become a memory, whoever says it.

Credentials are known by their vendors' prefixes, by their form (private keys, web tokens, database
addresses with a password) or by the word before them ("password is …" in English, Chinese and
Japanese). Card numbers and bank accounts count only when their check digits are right.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log2
from typing import Final

from engine.extract.spoken_secrets import spoken_secrets
from engine.text.normalize import normalize

REMOVED: Final = "[removed]"
"""Stands in a text for a secret that was taken out."""

_VENDOR: Final = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        sk-(?:ant-|proj-|or-v1-|svcacct-|admin-|lf-)?[A-Za-z0-9_-]{16,}
      | (?:pk|sk|rk)_(?:live|test)_[A-Za-z0-9]{10,} | whsec_[A-Za-z0-9+/=]{16,}
      | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{22,}
      | gl(?:pat|dt|rt|soat|cbt)-[A-Za-z0-9_.-]{16,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-\d-[A-Za-z0-9-]{10,}
      | hooks\.slack\.com/services/[A-Za-z0-9/]{20,}
      | (?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}
      | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,} | GOCSPX-[A-Za-z0-9_-]{20,}
      | hf_[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,} | pplx-[A-Za-z0-9]{20,}
      | xai-[A-Za-z0-9]{20,} | nvapi-[A-Za-z0-9_-]{20,} | co-[A-Za-z0-9]{36,}
      | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{20,} | dop_v1_[a-f0-9]{32,}
      | do[or]_v1_[a-f0-9]{32,} | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | key-[a-f0-9]{32}
      | SK[a-f0-9]{32} | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,} | sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}
      | EAAC[A-Za-z0-9]{20,} | dapi[a-f0-9]{32} | lin_api_[A-Za-z0-9]{20,} | secret_[A-Za-z0-9]{30,}
      | ntn_[A-Za-z0-9]{30,} | figd_[A-Za-z0-9_-]{20,} | hvs\.[A-Za-z0-9_-]{20,}
      | sntr[ysu]{1,2}_[A-Za-z0-9_=+/-]{20,} | PMAK-[a-f0-9]{24}-[a-f0-9]{20,}
      | sbp_[a-f0-9]{20,} | tskey-[a-z]+-[A-Za-z0-9-]{10,} | ms_[A-Za-z0-9_-]{20,}
      | cfat_[A-Za-z0-9]{20,} | glsa_[A-Za-z0-9_]{20,} | NRAK-[A-Z0-9]{20,} | dckr_pat_[\w-]{20,}
      | rubygems_[a-f0-9]{20,} | fo1_[\w-]{20,} | vercel_[A-Za-z0-9]{20,}
      | AGE-SECRET-KEY-1[A-Z0-9]{20,}
      | \d{8,10}:AA[A-Za-z0-9_-]{30,} | (?:mfa\.)?[MNO][A-Za-z0-9]{23,25}\.[\w-]{6}\.[\w-]{27,}
    )""",
    re.VERBOSE,
)
_WEB_TOKEN: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|PuTTY-User-Key-File-\d.*?(?:Private-MAC: \S+|\Z)",
    re.DOTALL,
)
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@\"']{0,100}:([^\s/@\"']{3,200})@")
_BEARER: Final = re.compile(
    r"\b(?:authorization\s*[:=]\s*)?(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{16,}=*)"
    r"|\bx-api-key\s*[:=]\s*([^\s,;\"']{8,})",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"""(?:\b|_)(?:pass(?:word|code|phrase|wd)?|pwd|passwort|api[ _-]?keys?|secret(?:[ _-]?key)?
        |access[ _-]?(?:key|token)|auth[ _-]?token|client[ _-]?secret|private[ _-]?key|token
        |recovery[ _-]?code|seed[ _-]?phrase|pin(?:[ _-]?(?:code|number))?|cvv|cvc|otp
        |credentials?)\b
        [^\S\n]*(?:(?:for|to|of|on|at)\s+[^\n:=]{1,50}?\s*)?
        (?:[:=]|\bis\b(?!\s+(?:not|a|an|the|too|very|wrong|required|invalid|empty|missing))
           |\bwas\b|->|=>)
        \s*(?:now\s+|still\s+|set\s+to\s+)?["'`]?([^\s"'`,;]{4,200})""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMED_CJK: Final = re.compile(
    r"""(?:密码|口令|密鑰|密钥|密碼|通行码|支付密码|开机密码|验证码|驗證碼|取件码|安全码
        |パスワード|暗証番号|パスコード|合言葉|秘密鍵|シークレットキー|APIキー|アクセストークン
        |トークン|認証コード|暗证号码|PIN码|私钥|助记词)
        [^\S\n]*(?:现在|目前|還|还)?(?:是|为|為|设为|設為|改成了?|改为|は|を|：|:|=|＝)
        \s*["'“「『]?([A-Za-z0-9!-/:-@\[-`{-~]{4,200})""",
    re.VERBOSE | re.IGNORECASE,
)
_CARD: Final = re.compile(
    r"(?<![\d.-])(?:\d(?:[ -]?\d){12,18}|\d{4}(?:\.\d{4}){2}\.\d{1,7})(?![\d-]|\.\d)"
)
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_US_NUMBER: Final = re.compile(
    r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])"
)
_CHINESE_ID: Final = re.compile(r"(?<!\d)[1-9]\d{5}(?:19|20)\d{9}[\dXx](?![\dA-Za-z])")
_OPAQUE: Final = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/=-]{32,}(?![\w/+-])")
_PLAIN = """
    required wrong invalid incorrect expired missing weak strong needed hidden secret secure stored
    hashed encrypted protected reset changed forgotten empty correct valid unknown none null true
    false limited rejected accepted printed passed that this here there what where used sent shown
    based good fine okay safe about being"""
_PLAIN_WORDS: Final = frozenset(_PLAIN.split())
_CARD_LENGTHS: Final = (13, 14, 15, 16, 19)
_CARD_BEGINNINGS: Final = re.compile(r"(?:4|5[1-5]|2[2-7]|3[47]|3[068]|35|6)")
_BITS_OF_CHANCE: Final = 3.6
"""Entropy for each character above which 32 characters or more are no word of any language."""


_PLAINLY: Final[Mapping[str, Callable[[str], str]]] = {
    "Cf": lambda _mark: "",
    "Pd": lambda _mark: "-",
    "Zs": lambda _mark: " ",
}


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands, and of which kind it is."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order; where two overlap, the one that begins first."""
    form, places = _plain_form(text)
    found = sorted(_all(form), key=lambda secret: (secret.start, -secret.end))
    if places is not None:
        found = [
            replace(one, start=places[one.start], end=places[one.end - 1] + 1) for one in found
        ]
    kept: list[Secret] = []
    for secret in found:
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


def has_secret(text: str) -> bool:
    """Whether a text holds a secret."""
    return next(_all(_plain_form(text)[0]), None) is not None


def without_secrets(text: str) -> str:
    """The text with each secret replaced by ``[removed]``."""
    for secret in reversed(find_secrets(text)):
        text = text[: secret.start] + REMOVED + text[secret.end :]
    return text


def _plain_form(text: str) -> tuple[str, list[int] | None]:
    """A text as it is meant, and where each of its characters stood; None where all stand there.

    Full-width letters and digits count as plain ones, every dash and space as one of ASCII, and
    marks that nobody sees do not hide anything.
    """
    if text.isascii():
        return text, None
    form: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for piece in _PLAINLY.get(unicodedata.category(character), _compatible)(character):
            form.append(piece)
            places.append(place)
    return "".join(form), places


def _compatible(character: str) -> str:
    return character if character.isascii() else unicodedata.normalize("NFKC", character)


def _all(text: str) -> Iterator[Secret]:
    for by in (_by_form, _by_name, _by_check_digits):
        for secret in by(text):
            if not text.startswith(REMOVED, secret.start):
                yield secret


def _by_form(text: str) -> Iterator[Secret]:
    for kind, pattern in (
        ("private key", _PRIVATE_KEY),
        ("API key", _VENDOR),
        ("token", _WEB_TOKEN),
        ("ID number", _CHINESE_ID),
        ("ID number", _US_NUMBER),
    ):
        for found in pattern.finditer(text):
            yield Secret(kind, *found.span())
    for found in _OPAQUE.finditer(text):
        if _looks_random(found[0]):
            yield Secret("token", *found.span())


def _by_name(text: str) -> Iterator[Secret]:
    for kind, pattern in (("password", _ADDRESS), ("token", _BEARER), ("password", _NAMED)):
        for found in pattern.finditer(text):
            group = next(place for place in range(1, pattern.groups + 1) if found[place])
            if pattern is not _NAMED or _could_be_password(found[group]):
                yield Secret(kind, *found.span(group))
    for found in _NAMED_CJK.finditer(text):
        yield Secret("password", *found.span(1))
    for start, end in spoken_secrets(text):
        yield Secret("password", start, end)


def _by_check_digits(text: str) -> Iterator[Secret]:
    for found in _CARD.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        if len(digits) in _CARD_LENGTHS and _CARD_BEGINNINGS.match(digits) and luhn(digits):
            yield Secret("card number", *found.span())
    for found in _IBAN.finditer(text):
        if is_iban(found[0]):
            yield Secret("bank account", *found.span())


def luhn(digits: str) -> bool:
    """Whether the check digit of a card number is right (ISO/IEC 7812)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0 and len(set(digits)) > 1


def is_iban(text: str) -> bool:
    """Whether the check digits of an international bank account number are right (ISO 13616)."""
    compact = text.replace(" ", "")
    if not 15 <= len(compact) <= 34:
        return False
    number = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return int(number) % 97 == 1


def _could_be_password(word: str) -> bool:
    plain = normalize(word).strip(".!?)")
    if plain in _PLAIN_WORDS:
        return False
    return not plain.isalpha() or len(plain) >= 6 or plain != word.strip(".!?)")


def _looks_random(word: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    is_mixed = all(any(kind(character) for character in word) for kind in kinds)
    return is_mixed and _entropy(word) >= _BITS_OF_CHANCE


def _entropy(word: str) -> float:
    counts = Counter(word)
    return -sum(n / len(word) * log2(n / len(word)) for n in counts.values())
