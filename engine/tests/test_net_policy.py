"""Which URLs and addresses are allowed. Ids are those of the case files."""

from __future__ import annotations

import dataclasses
import ipaddress

import pytest

from engine.net.addresses import Place, is_metadata_host, is_private_host, place
from engine.net.errors import UrlBlocked
from engine.net.policy import (
    OPERATOR,
    PUBLIC_ONLY,
    STRICT,
    UrlPolicy,
    check_addresses,
    check_url,
)

STRICT_LAN = dataclasses.replace(STRICT, allow_private=True)


def verdict(url: str, policy: UrlPolicy) -> str:
    """``ok``, ``loopback`` or the reason of the refusal."""
    try:
        target = check_url(url, policy)
    except UrlBlocked as error:
        return error.reason
    return "loopback" if target.is_loopback else "ok"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://api.example.com/v1/embeddings", "ok"),
        ("https://api.example.com/v1beta/models/gemini-embedding-001:embedContent", "ok"),
        ("HTTPS://API.example.com", "ok"),
        ("https://1.1.1.1/v1", "ok"),
        ("https://[2606:4700:4700::1111]/v1", "ok"),
        ("https://xn--bcher-kva.example/rerank", "ok"),
        ("http://localhost:11434/v1", "loopback"),
        ("http://127.8.9.10/rerank", "loopback"),
        ("http://[::1]:8080/rerank", "loopback"),
        ("http://10.0.0.5:8080/rerank", "https_required"),
        ("http://localhost.evil.example/x", "https_required"),
        ("https://10.0.0.5/rerank", "private_address"),
        ("https://[fd12:3456::1]/rerank", "private_address"),
        ("https://printer.local/x", "private_address"),
        ("https://169.254.170.2/v2", "blocked_address"),
        ("https://[fd00:ec2::254]/latest", "blocked_address"),
        ("https://100.100.100.200/latest", "blocked_address"),
        ("https://192.0.0.192/opc", "blocked_address"),
        ("https://168.63.129.16/x", "blocked_address"),
        ("https://metadata.google.internal/x", "blocked_address"),
        ("http://0.0.0.0:8080/x", "blocked_address"),
        ("http://[::]:8080/x", "blocked_address"),
        ("https://[::ffff:127.0.0.1]/x", "blocked_address"),
        ("https://[64:ff9b::a9fe:a9fe]/x", "blocked_address"),
        ("https://[2002:a9fe:a9fe::1]/x", "blocked_address"),
        ("https://[2001:0:a9fe::1]/x", "blocked_address"),
        ("https://[2606::5efe:a9fe:a9fe]/x", "blocked_address"),
        ("https://255.255.255.255/x", "blocked_address"),
        ("http://0x7f000001/x", "noncanonical_ip"),
        ("http://0177.0.0.1/x", "noncanonical_ip"),
        ("http://127.1/x", "noncanonical_ip"),
        ("http://2130706433/x", "noncanonical_ip"),
        ("https://1.2.3.4.5/x", "noncanonical_ip"),
        ("https://bücher.example/x", "bad_character"),
        ("https://exa mple.com/x", "bad_character"),
        ("https://exam\tple.com/x", "bad_character"),
        ("https://api.example.com/x\r\nHost: y", "bad_character"),
        ("https://a\\@127.0.0.1/x", "bad_character"),
        ("https://user:pw@api.example.com/x", "credentials_in_url"),
        ("https://@api.example.com/x", "credentials_in_url"),
        ("http://localhost@evil.example/x", "credentials_in_url"),
        ("https://api.example.com/x?", "query_in_url"),
        ("https://api.example.com?a=1", "query_in_url"),
        ("https://api.example.com/x#", "fragment_in_url"),
        ("https://api.example.com/x#a?b", "fragment_in_url"),
        ("https://api.example.com:0/x", "bad_port"),
        ("https://api.example.com:99999/x", "bad_port"),
        ("https://api.example.com:/x", "bad_port"),
        ("https://api.example.com:8a/x", "bad_port"),
        ("https://[::1]:/x", "bad_port"),
        ("https:///x", "bad_host"),
        ("https://api.example.com./x", "bad_host"),
        ("https://-bad.example/x", "bad_host"),
        ("https://a..b/x", "bad_host"),
        ("https://api.example.com%00.evil/x", "bad_host"),
        ("https://[fe80::1%25eth0]/x", "bad_host"),
        ("https://[::1/x", "bad_host"),
        ("https://[::1]x/", "bad_host"),
        ("https://::1/x", "bad_host"),
        ("api.example.com/x", "malformed"),
        ("localhost:8080/x", "malformed"),
        ("//api.example.com/x", "malformed"),
        ("https:/x", "malformed"),
        ("", "malformed"),
        ("ftp://api.example.com/x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://127.0.0.1:6379/_x", "scheme"),
    ],
)
def test_a_url_is_judged_strictly(url: str, wanted: str) -> None:
    assert verdict(url, STRICT) == wanted


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://10.0.0.5/rerank", "ok"),
        ("https://100.64.0.1/rerank", "ok"),
        ("http://10.0.0.5/rerank", "https_required"),
        ("https://100.100.100.200/x", "blocked_address"),
        ("https://[fd00:ec2::254]/x", "blocked_address"),
    ],
)
def test_private_ranges_can_be_allowed_metadata_never(url: str, wanted: str) -> None:
    assert verdict(url, STRICT_LAN) == wanted


@pytest.mark.parametrize(
    ("url", "operator", "public"),
    [
        ("http://127.0.0.1:8000/v1", "loopback", "private_address"),
        ("http://localhost:8000/v1", "loopback", "private_address"),
        ("http://192.168.1.4/v1", "ok", "private_address"),
        ("http://nas.local/v1", "ok", "private_address"),
        ("http://169.254.169.254/latest", "blocked_address", "blocked_address"),
        ("http://u:p@h/v1", "credentials_in_url", "credentials_in_url"),
        ("ftp://h/", "scheme", "scheme"),
        ("notaurl", "malformed", "malformed"),
        ("https://api.example.com/v1", "ok", "ok"),
        ("http://[::ffff:169.254.169.254]/", "blocked_address", "blocked_address"),
        ("http://metadata.google.internal./v1", "bad_host", "bad_host"),
        ("http://2852039166/", "noncanonical_ip", "noncanonical_ip"),
        ("http://0xa9fea9fe/", "noncanonical_ip", "noncanonical_ip"),
    ],
)
def test_outbound_url_policies_of_the_first_seed(url: str, operator: str, public: str) -> None:
    assert (verdict(url, OPERATOR), verdict(url, PUBLIC_ONLY)) == (operator, public)


def test_an_unusable_url_is_told_from_a_refused_one() -> None:
    assert UrlBlocked("malformed").is_invalid
    assert not UrlBlocked("blocked_address").is_invalid


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://127.0.0.1:8080/v1", "loopback"),
        ("https://127.0.0.1/rerank", "loopback"),
        ("https://10.0.0.5/rerank", "not_loopback"),
        ("https://api.example.com/rerank", "not_loopback"),
    ],
)
def test_a_device_only_policy_stays_on_the_machine(url: str, wanted: str) -> None:
    assert verdict(url, dataclasses.replace(STRICT_LAN, loopback_only=True)) == wanted


@pytest.mark.parametrize(
    ("host", "addresses", "policy", "wanted"),
    [
        ("api.example.com", ["93.184.216.34"], STRICT, "ok"),
        ("api.example.com", ["93.184.216.34", "10.0.0.1"], STRICT, "private_address"),
        ("api.example.com", ["169.254.169.254"], STRICT, "blocked_address"),
        ("api.example.com", ["::1"], STRICT, "name_resolves_to_loopback"),
        ("api.example.com", ["::ffff:10.0.0.1"], STRICT, "blocked_address"),
        ("api.example.com", ["fe80::1"], STRICT, "blocked_address"),
        ("lan.example.com", ["10.0.0.1"], STRICT_LAN, "ok"),
        ("lan.example.com", ["10.0.0.1", "169.254.169.254"], STRICT_LAN, "blocked_address"),
        ("localhost", ["127.0.0.1", "::1"], STRICT, "ok"),
        ("localhost", ["10.0.0.1"], STRICT, "loopback_name_not_loopback"),
        ("127.0.0.1", ["127.0.0.1"], STRICT, "ok"),
        ("127.0.0.1.nip.io", ["127.0.0.1"], STRICT, "name_resolves_to_loopback"),
        ("myhost", ["127.0.1.1"], OPERATOR, "ok"),
        ("myhost", ["127.0.1.1"], PUBLIC_ONLY, "name_resolves_to_loopback"),
        ("api.example.com", [], STRICT, "dns_failed"),
        (
            "api.example.com",
            ["93.184.216.34"],
            dataclasses.replace(STRICT, loopback_only=True),
            "not_loopback",
        ),
    ],
)
def test_every_address_of_a_name_is_judged(
    host: str, addresses: list[str], policy: UrlPolicy, wanted: str
) -> None:
    found = [ipaddress.ip_address(text) for text in addresses]
    try:
        check_addresses(host, found, policy)
    except UrlBlocked as error:
        assert error.reason == wanted
    else:
        assert wanted == "ok"


@pytest.mark.parametrize(
    ("host", "private", "metadata"),
    [
        pytest.param("localhost", True, False, id="url_host_class-01"),
        pytest.param("172.31.255.255", True, False, id="url_host_class-07"),
        pytest.param("172.32.0.1", False, False, id="next to a private range"),
        pytest.param("100.64.0.1", True, False, id="url_host_class-11"),
        pytest.param("100.128.0.1", False, False, id="url_host_class-12"),
        pytest.param("::1", True, False, id="url_host_class-13"),
        pytest.param("fe80::1", True, False, id="url_host_class-15"),
        pytest.param("fd00:ec2::254", True, True, id="url_host_class-17"),
        pytest.param("foo.local", True, False, id="url_host_class-18"),
        pytest.param("metadata.google.internal", True, True, id="url_host_class-19"),
        pytest.param("::ffff:1.2.3.4", True, False, id="url_host_class-20"),
        pytest.param("example.com", False, False, id="url_host_class-21"),
        pytest.param("", True, False, id="url_host_class-23"),
        pytest.param("metadata.goog", False, True, id="url_host_class-24"),
        pytest.param("100.100.100.200", True, True, id="url_host_class-25"),
        pytest.param("169.254.169.254", True, True, id="metadata address"),
        pytest.param("[::ffff:169.254.169.254]", True, True, id="mapped metadata address"),
        pytest.param("metadata.google.internal.", True, True, id="trailing dot"),
    ],
)
def test_hosts_are_classed_as_written(host: str, private: bool, metadata: bool) -> None:
    assert (is_private_host(host), is_metadata_host(host)) == (private, metadata)


def test_addresses_ipaddress_calls_global_are_still_placed_right() -> None:
    texts = ("192.0.0.192", "168.63.129.16", "fec0::1", "3fff::1", "5f00::1", "198.18.0.1")
    assert {place(ipaddress.ip_address(text)) for text in texts} == {Place.BLOCKED}
