"""Which proxy is taken, and requests through each kind of proxy."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.net.addresses import Address
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, PUBLIC_ONLY, check_url
from engine.net.proxies import Proxies, configured_proxy, parse_proxy
from engine.testing.certificates import write_certificate
from engine.testing.fake_provider import Provider, json_answer, serving
from engine.testing.fake_proxy import FakeProxy, proxying

ENVIRONMENT = {"HTTPS_PROXY": "http://q:2"}


def via(url: str, proxies: Proxies) -> str:
    """The proxy of a URL as shown, or ``direct``."""
    proxy = proxies.route(check_url(url, OPERATOR))
    return "direct" if proxy is None else proxy.shown


@pytest.mark.parametrize(
    ("url", "configured", "environment", "wanted"),
    [
        pytest.param("http://127.0.0.1:8080/x", "http://p:1", {}, "direct", id="proxy_route-01"),
        pytest.param("http://localhost/x", "http://p:1", {}, "direct", id="localhost"),
        pytest.param("http://[::1]/x", "http://p:1", {}, "direct", id="IPv6 loopback"),
        pytest.param("https://a.example/x", "http://p:1", {}, "http://p:1", id="proxy_route-03"),
        pytest.param(
            "https://a.example/x", "http://p:1", ENVIRONMENT, "http://p:1", id="proxy_route-04"
        ),
        pytest.param("https://a.example/x", "", ENVIRONMENT, "http://q:2", id="proxy_route-05"),
        pytest.param("https://a.example/x", "", {}, "direct", id="proxy_route-06"),
        pytest.param("http://a.example/x", "", ENVIRONMENT, "direct", id="another scheme"),
        pytest.param(
            "http://a.example/x",
            "",
            {"ALL_PROXY": "socks5h://s:3"},
            "socks5h://s:3",
            id="all schemes",
        ),
        pytest.param(
            "https://a.example/x",
            "",
            {"HTTPS_PROXY": "http://q:2", "https_proxy": "http://r:4"},
            "http://r:4",
            id="lower case first",
        ),
        pytest.param("https://a.example/", "", {"https_proxy": "q:2"}, "http://q:2", id="bare"),
        pytest.param("https://a.example/", "", {"https_proxy": " "}, "direct", id="blank"),
    ],
)
def test_the_route_of_a_request(
    url: str, configured: str, environment: dict[str, str], wanted: str
) -> None:
    proxy = configured_proxy(configured) if configured else None
    assert via(url, Proxies(proxy, environment)) == wanted


@pytest.mark.parametrize(
    ("url", "exceptions", "is_direct"),
    [
        ("https://a.example/", "a.example", True),
        ("https://b.a.example/", "a.example", True),
        ("https://b.a.example/", ".a.example", True),
        ("https://b.a.example/", "*.a.example", True),
        ("https://ba.example/", "a.example", False),
        ("https://a.example/", " other.example , A.EXAMPLE ", True),
        ("https://a.example/", "a.example:443", True),
        ("https://a.example/", "a.example:8443", False),
        ("https://a.example/", "*", True),
        ("https://10.1.2.3/", "10.0.0.0/8", True),
        ("https://11.1.2.3/", "10.0.0.0/8", False),
        ("https://10.1.2.3/", "10.1.2.3", True),
        ("https://[fd00::5]/", "fd00::/8", True),
        ("https://[fd00::5]/", "[fd00::5]:443", True),
        ("https://a.example/", "", False),
    ],
)
def test_no_proxy_names_exceptions(url: str, exceptions: str, is_direct: bool) -> None:
    found = via(url, Proxies(None, {**ENVIRONMENT, "NO_PROXY": exceptions}))
    assert (found == "direct") is is_direct


def test_no_proxy_does_not_speak_for_a_configured_proxy() -> None:
    proxies = Proxies(configured_proxy("http://p:1"), {"NO_PROXY": "*"})
    assert via("https://a.example/", proxies) == "http://p:1"


@pytest.mark.parametrize("named", ["ftp://q:2", "http://", "http://q:99999", "http://q/path"])
def test_a_variable_that_names_no_proxy_stops_the_request(named: str) -> None:
    with pytest.raises(UrlBlocked) as caught:
        via("https://a.example/", Proxies(None, {"https_proxy": named}))
    assert caught.value.reason == "bad_proxy"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://x", "proxy_scheme"),
        ("socks4://x", "proxy_scheme"),
        ("p:1", "proxy_malformed"),
        ("http://", "proxy_malformed"),
        ("http://p:0", "proxy_malformed"),
        ("http://p/path", "proxy_malformed"),
        ("http://u:p@proxy.example:3128", "proxy_credentials_in_config"),
        ("http://@proxy.example:3128", "proxy_credentials_in_config"),
    ],
)
def test_a_configured_proxy_is_checked(url: str, code: str) -> None:
    with pytest.raises(EngineError) as caught:
        configured_proxy(url)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:7890", ("127.0.0.1", 7890)),
        ("https://proxy.example", ("proxy.example", 443)),
        ("SOCKS5://Proxy.example/", ("proxy.example", 1080)),
        ("socks5h://[fd00::1]:9", ("fd00::1", 9)),
        ("http://proxy.example", ("proxy.example", 80)),
    ],
)
def test_the_four_kinds_of_proxy_are_read(url: str, place: tuple[str, int]) -> None:
    proxy = configured_proxy(url)
    assert (proxy.host, proxy.port) == place


def test_credentials_of_a_variable_are_never_shown() -> None:
    proxy = parse_proxy("http://us%40er:s%3Acret@proxy.example:3128")
    assert proxy.credentials == ("us@er", "s:cret")
    assert proxy.shown == "http://proxy.example:3128"
    assert "cret" not in repr(proxy)
    assert "cret" not in repr(Proxies(None, {"https_proxy": "http://u:secret@p"}))


class Names:
    """A resolver that knows loopback only, and notes who was asked for."""

    def __init__(self, *addresses: str) -> None:
        self.asked: list[str] = []
        self.addresses = addresses or ("127.0.0.1",)

    def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        return [ipaddress.ip_address(text) for text in self.addresses]


Client = Callable[..., HttpClient]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return write_certificate(tmp_path / "certificate.pem", "api.test", "proxy.test")


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def make(certificate: Path) -> Iterator[Client]:
    made: list[HttpClient] = []
    trust = ssl.create_default_context(cafile=str(certificate))

    def build(proxy: str, names: Names | None = None, public: bool = False) -> HttpClient:
        client = HttpClient(
            PUBLIC_ONLY if public else OPERATOR,
            proxies=Proxies(parse_proxy(proxy)),
            resolve=names or Names(),
            tls=trust,
            limits=Limits(retries=0, total_s=20.0),
        )
        made.append(client)
        return client

    yield build
    for client in made:
        client.close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = lambda request: json_answer({"ok": True})
        yield running


@pytest.fixture
def secure(server_tls: ssl.SSLContext) -> Iterator[Provider]:
    with serving(server_tls) as running:
        running.respond = lambda request: json_answer({"ok": True})
        yield running


@pytest.fixture
def proxy(provider: Provider) -> Iterator[FakeProxy]:
    with proxying(provider.port) as running:
        yield running


@pytest.fixture
def secure_proxy(secure: Provider) -> Iterator[FakeProxy]:
    with proxying(secure.port) as running:
        yield running


def test_plain_http_is_forwarded_with_its_full_url(
    proxy: FakeProxy, provider: Provider, make: Client
) -> None:
    names = Names()
    client = make(f"http://u:pass@127.0.0.1:{proxy.port}", names)
    assert client.post_json("http://api.test:81/v1/x", {"a": 1}) == {"ok": True}
    assert proxy.asked == ["POST http://api.test:81/v1/x"]
    assert proxy.credentials == ["Basic dTpwYXNz"]
    assert provider.requests[0].headers["host"] == "api.test:81"
    assert names.asked == []


def test_https_goes_through_a_tunnel_and_tls_verifies_the_server(
    secure_proxy: FakeProxy, secure: Provider, make: Client
) -> None:
    names = Names()
    client = make(f"http://u:pass@127.0.0.1:{secure_proxy.port}", names)
    assert client.get_json("https://api.test/v1/x") == {"ok": True}
    assert secure_proxy.asked == ["CONNECT api.test:443"]
    assert secure_proxy.credentials == ["Basic dTpwYXNz"]
    assert "proxy-authorization" not in secure.requests[0].headers
    assert names.asked == []


def test_a_server_with_another_certificate_is_refused_behind_a_proxy(
    secure_proxy: FakeProxy, secure: Provider, make: Client
) -> None:
    with pytest.raises(HttpFailed) as caught:
        make(f"http://127.0.0.1:{secure_proxy.port}").get_json("https://other.test/v1/x")
    assert (caught.value.code, secure.requests) == ("tls_failed", [])


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_way_to_the_proxy_may_itself_be_tls(
    scheme: str, server_tls: ssl.SSLContext, make: Client
) -> None:
    with serving(server_tls if scheme == "https" else None) as running:
        running.respond = lambda request: json_answer({"ok": True})
        with proxying(running.port, server_tls) as proxy:
            client = make(f"https://proxy.test:{proxy.port}")
            assert client.get_json(f"{scheme}://api.test/x") == {"ok": True}
            wanted = "GET http://api.test/x" if scheme == "http" else "CONNECT api.test:443"
            assert proxy.asked == [wanted]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_socks5h_leaves_the_name_to_the_proxy(
    scheme: str, server_tls: ssl.SSLContext, make: Client
) -> None:
    names = Names()
    with serving(server_tls if scheme == "https" else None) as running:
        running.respond = lambda request: json_answer({"ok": True})
        with proxying(running.port) as proxy:
            proxy.wants_password = True
            client = make(f"socks5h://u:pass@127.0.0.1:{proxy.port}", names)
            assert client.get_json(f"{scheme}://api.test:99/x") == {"ok": True}
            assert (proxy.asked, proxy.credentials) == (["api.test:99"], ["u:pass"])
    assert names.asked == []


def test_socks5_resolves_here_and_sends_the_address(proxy: FakeProxy, make: Client) -> None:
    proxy.bound = bytes([4, *range(16)])
    names = Names("93.184.216.34")
    client = make(f"socks5://127.0.0.1:{proxy.port}", names)
    assert client.get_json("http://api.test/x") == {"ok": True}
    assert (proxy.asked, names.asked) == (["93.184.216.34:80"], ["api.test"])


def test_socks5_refuses_a_name_that_leads_to_a_blocked_address(
    proxy: FakeProxy, make: Client
) -> None:
    client = make(f"socks5://127.0.0.1:{proxy.port}", Names("169.254.169.254"))
    with pytest.raises(UrlBlocked):
        client.get_json("http://api.test/x")
    assert proxy.asked == []


def test_a_literal_address_is_judged_whatever_the_proxy(proxy: FakeProxy, make: Client) -> None:
    client = make(f"http://127.0.0.1:{proxy.port}", public=True)
    with pytest.raises(UrlBlocked):
        client.get_json("http://10.0.0.5/x")
    assert proxy.asked == []


def test_loopback_never_sees_the_proxy(proxy: FakeProxy, provider: Provider, make: Client) -> None:
    client = make(f"http://127.0.0.1:{proxy.port}")
    assert client.get_json(f"http://localhost:{provider.port}/x") == {"ok": True}
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("kind", "status", "reply", "code"),
    [
        ("http", 407, 0, "proxy_refused"),
        ("http", 403, 0, "proxy_refused"),
        ("http", 502, 0, "connect_failed"),
        ("http", 504, 0, "connect_failed"),
        ("socks5h", 200, 2, "proxy_refused"),
        ("socks5h", 200, 5, "connect_failed"),
    ],
)
def test_what_a_proxy_refuses_is_told_from_what_it_cannot_reach(
    secure_proxy: FakeProxy, make: Client, kind: str, status: int, reply: int, code: str
) -> None:
    secure_proxy.status, secure_proxy.reply = status, reply
    with pytest.raises(HttpFailed) as caught:
        make(f"{kind}://127.0.0.1:{secure_proxy.port}").get_json("https://api.test/x")
    assert caught.value.code == code
    assert "api.test" not in str(caught.value)


def test_a_socks_proxy_that_wants_a_password_gets_none_it_does_not_have(
    proxy: FakeProxy, make: Client
) -> None:
    proxy.wants_password = True
    with pytest.raises(HttpFailed) as caught:
        make(f"socks5h://127.0.0.1:{proxy.port}").get_json("http://api.test/x")
    assert caught.value.code == "proxy_refused"
