"""Areas of outbound HTTP: URLs, addresses, proxies, statuses and retries."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence
from typing import Any, Final

from engine.backends.config import ConfigInvalid
from engine.backends.config import read as read_backend
from engine.errors import Cancelled, EngineError
from engine.net.addresses import Address, is_metadata_host, is_private_host
from engine.net.client import HttpClient, Limits
from engine.net.errors import UrlBlocked
from engine.net.policy import (
    OPERATOR,
    PUBLIC_ONLY,
    STRICT,
    UrlPolicy,
    check_addresses,
    check_url,
)
from engine.net.proxies import Proxies, configured_proxy
from engine.net.retry import delay_ms, outcome
from engine.testing.fake_provider import Answer, Provider, serving
from memory.cases.registry import Case, CaseFile, adapter

POLICIES: Final = {"block-metadata": OPERATOR, "public-only": PUBLIC_ONLY}


@adapter("url_policy", "url_policy_private_allowed", "url_policy_dns")
def url_policy(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The strict policy on a URL and, where the case gives them, on its addresses."""
    asked = case["input"]
    policy = dataclasses.replace(STRICT, allow_private=asked.get("allow_private", False))
    return _verdict(asked["url"], policy, asked.get("dns"))


@adapter("device_only")
def device_only(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The same for a vault whose text stays on the machine."""
    asked = case["input"]
    policy = dataclasses.replace(
        STRICT,
        allow_private=asked.get("allow_private", False),
        loopback_only=asked["vault"] == "device_only",
    )
    found = _verdict(asked["url"], policy, asked.get("dns"))
    if found.get("reason") == "not_loopback":
        found["reason"] = "device_only_vault"
    return found


def _verdict(url: str, policy: UrlPolicy, dns: Sequence[str] | None) -> dict[str, Any]:
    try:
        target = check_url(url, policy)
        if dns is not None:
            check_addresses(target.host, [ipaddress.ip_address(text) for text in dns], policy)
    except UrlBlocked as error:
        return {"accept": False, "reason": error.reason}
    return {"accept": True, "loopback": target.is_loopback}


@adapter("url_host_class")
def url_host_class(case: Case, _file: CaseFile) -> dict[str, bool]:
    """What a host as written is."""
    host = case["input"]["host"]
    return {"private": is_private_host(host), "metadata": is_metadata_host(host)}


@adapter("outbound_url")
def outbound_url(case: Case, _file: CaseFile) -> dict[str, Any]:
    """The first system's two policies; without a policy, what each says."""
    asked = case["input"]
    if "policy" not in asked:
        return {
            name: "ALLOWED" if _refusal(asked["url"], policy) is None else "BLOCKED"
            for name, policy in POLICIES.items()
        }
    refused = _refusal(asked["url"], POLICIES[asked["policy"]])
    if refused is None:
        return {"ok": True}
    kind = "INVALID" if refused.is_invalid else "GUARD_BLOCKED"
    return {"ok": False, "code": f"OUTBOUND_URL_{kind}"}


@adapter("generic_backend_ssrf")
def generic_backend_ssrf(case: Case, _file: CaseFile) -> dict[str, Any]:
    """Whether a generic backend may be there; an exception only where an operator can make it."""
    url = case["input"]["baseUrl"]
    found: dict[str, Any] = {"allowed": _may_be_backend(url)}
    exception = case.get("ours", {}).get("unless")
    if exception and not found["allowed"] and _may_be_backend(url, allowLoopback=True):
        found["unless"] = exception
    return found


def _may_be_backend(url: str, **allowing: bool) -> bool:
    try:
        read_backend("case", {"baseUrl": url, **allowing})
    except ConfigInvalid:
        return False
    return True


def _refusal(url: str, policy: UrlPolicy) -> UrlBlocked | None:
    try:
        check_url(url, policy)
    except UrlBlocked as error:
        return error
    return None


@adapter("proxy_route")
def proxy_route(case: Case, _file: CaseFile) -> dict[str, str]:
    """The proxy a request takes."""
    asked = case["input"]
    configured = configured_proxy(asked["proxy_url"]) if asked.get("proxy_url") else None
    environment = asked.get("env", {}) if asked.get("use_env_proxy", True) else {}
    proxy = Proxies(configured, environment).route(check_url(asked["url"], OPERATOR))
    return {"via": "direct" if proxy is None else proxy.shown}


@adapter("http_status")
def http_status(case: Case, _file: CaseFile) -> dict[str, Any]:
    """What a status means."""
    found = outcome(case["input"]["status"])
    return {"retried": found.is_retried, "error": found.error}


@adapter("retry_delay")
def retry_delay(case: Case, _file: CaseFile) -> dict[str, int]:
    """How long to wait before an attempt."""
    asked = case["input"]
    wait = delay_ms(
        asked["retry_index"], backoff_ms=asked["backoff_ms"], retry_after=asked["retry_after"]
    )
    return {"delay_ms": wait}


@adapter("retry_sequence")
def retry_sequence(case: Case, _file: CaseFile) -> dict[str, Any]:
    """A request to a real server on loopback that answers as scripted.

    A number is a status. Words name what else can happen: a lock during the wait, a broken or
    silent connection, a certificate that is not trusted, an answer that is no JSON.
    """
    asked = case["input"]
    try:
        limits = Limits(retries=asked["retries"], connect_s=0.5, total_s=0.5)
    except EngineError as error:
        return {"result": f"config error {error.code}"}
    with serving() as provider:
        return _sequence(provider, limits, asked["answers"])


def _sequence(provider: Provider, limits: Limits, answers: Sequence[Any]) -> dict[str, Any]:
    attempts: list[str] = []
    is_secure = any("certificate" in str(answer) or "tls" in str(answer) for answer in answers)
    provider.script = [_scripted(answer) for answer in answers if not _is_lock(answer)]

    def resolve(host: str, _port: int) -> Sequence[Address]:
        attempts.append(host)
        return [ipaddress.ip_address("127.0.0.1")]

    def wait(_seconds: float) -> None:
        if len(attempts) < len(answers) and _is_lock(answers[len(attempts)]):
            raise Cancelled("The vault was locked.")

    client = HttpClient(OPERATOR, resolve=resolve, wait=wait)
    scheme = "https" if is_secure else "http"
    try:
        client.post_json(f"{scheme}://api.test:{provider.port}/x", {}, limits=limits)
        result = "ok"
    except Cancelled:
        result = "cancelled"
    except EngineError:
        result = "error"
    finally:
        client.close()
    return {"attempts": len(attempts), "result": result}


def _is_lock(answer: object) -> bool:
    return isinstance(answer, str) and any(
        word in answer for word in ("locked", "revoked", "expired", "cancel")
    )


def _scripted(answer: int | str) -> Answer:
    if isinstance(answer, int):
        return Answer(answer, b"{}" if answer < 300 else b"")
    if answer.startswith("200"):
        return Answer(200, b"<html>")
    return Answer(hangs="timeout" in answer, drops="timeout" not in answer)
