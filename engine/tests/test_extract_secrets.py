"""Secrets are found by prefix, form, name and check digits; ordinary text is left alone."""

from __future__ import annotations

import pytest

from engine.extract.screening import read_turn
from engine.extract.secrets import find_secrets, has_secret, luhn, without_secrets

RANDOM = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1b"
PREFIXES = [
    "sk-", "sk-ant-", "sk-proj-", "sk_live_", "rk_test_", "ghp_", "github_pat_", "glpat-",
    "xoxb-", "AIza" + "Sy", "hf_", "gsk_", "npm_", "pypi-", "dckr_pat_", "figd_", "hvs.", "ms_",
]  # fmt: skip
SECRETS = {
    "AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "web token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "private key without end": "-----BEGIN PRIVATE KEY-----\nMIIEow",
    "address": "postgres://ada:s3cr3t-word@db.example/app",
    "bearer": "Authorization: Bearer abcdefghijklmnop1234",
    "english": "my password is hunter2",
    "english for a thing": "The wifi password for the guest network is Sunflower22",
    "assignment": "API_KEY=abcd1234efgh",
    "pin": "my PIN is 4821",
    "chinese": "我的密码是 abc12345",
    "chinese colon": "wifi密码:qwer1234",
    "japanese": "パスワードはhimitsu99です",
    "card": "4111 1111 1111 1111",
    "card with hyphens": "5500-0000-0000-0004",
    "amex": "378282246310005",
    "iban": "DE89 3704 0044 0532 0130 00",
    "social security": "078-05-1120",
    "opaque": RANDOM + RANDOM,
    "full-width": "my card is ４１１１１１１１１１１１１１１１",
    "full-width name": "Ｍｙ ｐａｓｓｗｏｒｄ： hunter2",
    "unseen marks": "my pass\u200bword is hunt\u200ber2",
    "unseen marks in a key": f"sk-\u200b{RANDOM}",
    "card with other dashes": "4111–1111–1111–1111",
    "card with other spaces": "4111\u00a01111\u00a01111\u00a01111",
    "card with stops": "4111.1111.1111.1111",
    "phrase": "my password is correct horse battery staple",
    "seed phrase": "my recovery phrase is witch collapse practice feed shame open despair creek",
    "without a verb": "my wifi password hunter2",
    "short verb": "the wifi password's Sunny-Day-42",
    "german": "mein Passwort ist geheim123",
    "login": "my login is bob / Tr0ub4dor&3",
    "door": "my door code is 4471",
    "backup": "my 2FA backup code is 84929-33812",
    "answer": "my security answer is Fluffy",
    "disguised": "my p@ssword is hunter22",
    "short name": "my pw is hunter2",
    "used": "I use hunter2 as my password",
    "chinese door": "我家的门禁码是4471",
    "chinese without a verb": "我的WiFi密码 hunter2",
    "chinese numerals": "我的密码是一二三四五六",
    "chinese used": "我喜欢用 hunter2 作密码",
}
ORDINARY = [
    "The password is required", "I prefer password managers", "the token is limited",
    "I call +1 415 555 2671 often", "4111 1111 1111 1112", "550e8400-e29b-41d4-a716-446655440000",
    "commit 8f14e45fceea167a5a36dedd4bea2543aabbccdd", "I forgot my password", "密码错误",
    "パスワードを忘れました", "order 1234567890123", "I like sk-iing and hf radios",
    "https://example.org/path?x=1", "The login is broken", "I use 1Password as my password manager",
    "my password is stored in the vault", "my password is way too weak for this",
    "I pass 1000 people every day", "the number pi is 3.141592653589793238", "门禁码错误",
    "I use Python3 for my web app", "pass rates were 4471 last year", "用 python3 做项目",
    "my security answer was forgotten long ago", "my door code is written down",
]  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_vendors_prefix_gives_a_key_away(prefix: str) -> None:
    assert has_secret(f"use {prefix}{RANDOM} for it")


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_found_and_taken_out(text: str) -> None:
    said = f"Please note: {text} and more"
    (found,) = find_secrets(said)
    assert not has_secret(without_secrets(said))
    assert said[found.start : found.end] not in without_secrets(said)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_holds_no_secret(text: str) -> None:
    assert find_secrets(text) == []


def test_the_check_digit_of_a_card_counts() -> None:
    assert luhn("4111111111111111")
    assert not luhn("4111111111111112")
    assert not luhn("0000000000000000")


@pytest.mark.parametrize(
    "text",
    [
        f"I prefer sk-{RANDOM} as my key.",
        "Remember that my password is hunter2-Blue.",
        "I always use 4111 1111 1111 1111 to pay.",
        "记住,我的密码是 abc12345。",
        "覚えておいて、パスワードはhimitsu99です。",
    ],
)
def test_no_fact_holds_a_secret(text: str) -> None:
    screened = read_turn(text)
    said = repr(screened)
    assert not has_secret(said)
    assert screened.stored == () and screened.held == ()


def test_a_fact_beside_a_secret_is_kept_without_it() -> None:
    screened = read_turn("My name is Ada and my password is hunter2-Blue. I prefer dark mode.")
    assert {fact.content for fact in screened.stored} == {"Ada", "dark mode"}
    assert not has_secret(repr(screened))
