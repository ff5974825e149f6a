"""One file: resumed, retried, bounded, checked. The server is a small one on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Cancelled
from engine.models_install.download import Downloader, Wanted
from engine.models_install.errors import InstallFailed
from engine.models_install.origin import DOWNLOADS
from engine.net.client import HttpClient, Limits
from engine.testing.fake_provider import Answer, Provider, Request, serving

BODY = bytes(range(256)) * 600


class Waits(list[float]):
    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = ranged
        yield running


@pytest.fixture
def downloader(waits: Waits) -> Iterator[Downloader]:
    client = HttpClient(DOWNLOADS)
    yield Downloader(client, Limits(total_s=20.0), wait=waits)
    client.close()


@pytest.fixture
def wanted(provider: Provider, tmp_path: Path) -> Wanted:
    url = f"http://127.0.0.1:{provider.port}/model.bin"
    digest = hashlib.sha256(BODY).hexdigest()
    return Wanted(url, tmp_path / "onnx" / "model.bin", len(BODY), digest)


def ranged(request: Request) -> Answer:
    """The whole body, or the rest of it from a range's start."""
    asked = request.headers.get("range")
    if asked is None:
        return Answer(200, BODY)
    start = int(asked.removeprefix("bytes=").rstrip("-"))
    told = {"Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"}
    return Answer(206, BODY[start:], told)


def keep_part(wanted: Wanted, content: bytes = BODY[:1000]) -> None:
    wanted.path.parent.mkdir(parents=True)
    wanted.part.write_bytes(content)


def put(wanted: Wanted, content: bytes) -> None:
    wanted.path.parent.mkdir(parents=True)
    wanted.path.write_bytes(content)


def ranges(provider: Provider) -> list[str | None]:
    return [request.headers.get("range") for request in provider.requests]


def ignore(_size: int) -> None:
    pass


def refused(downloader: Downloader, wanted: Wanted) -> InstallFailed:
    with pytest.raises(InstallFailed) as caught:
        downloader.fetch(wanted, ignore)
    assert "://" not in str(caught.value)
    return caught.value


def test_a_file_is_downloaded_and_told_as_it_comes(downloader: Downloader, wanted: Wanted) -> None:
    heard: list[int] = []
    assert downloader.fetch(wanted, heard.append)
    assert wanted.path.read_bytes() == BODY
    assert not wanted.part.exists()
    assert heard == sorted(heard)
    assert heard[-1] == len(BODY)


def test_model_install_01_a_right_file_is_reused_without_a_request(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    put(wanted, BODY)
    assert not downloader.fetch(wanted, ignore)
    assert provider.requests == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(BODY[::-1], id="model_install-02"),
        pytest.param(BODY[:-1], id="model_install-03"),
    ],
)
def test_a_wrong_file_is_left_as_it_is(
    downloader: Downloader, wanted: Wanted, provider: Provider, content: bytes
) -> None:
    put(wanted, content)
    assert refused(downloader, wanted).code == "model_file_mismatch"
    assert wanted.path.read_bytes() == content
    assert provider.requests == []


def test_model_install_04_a_part_is_resumed(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    keep_part(wanted)
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider) == ["bytes=1000-"]
    assert wanted.path.read_bytes() == BODY


def test_model_install_05_a_server_without_ranges_restarts_it(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    keep_part(wanted, b"x" * 1000)
    provider.script = [Answer(200, BODY)]
    assert downloader.fetch(wanted, ignore)
    assert wanted.path.read_bytes() == BODY


@pytest.mark.parametrize("told", ["bytes 999-", "bytes 0-10/11", "pages 1-", ""])
def test_model_install_06_another_range_drops_the_part(
    downloader: Downloader, wanted: Wanted, provider: Provider, told: str
) -> None:
    keep_part(wanted)
    provider.script = [Answer(206, BODY[999:], {"Content-Range": told})]
    assert refused(downloader, wanted).code == "range_mismatch"
    assert not wanted.part.exists()
    assert len(provider.requests) == 1


def test_a_part_of_wrong_bytes_is_found_by_the_hash(downloader: Downloader, wanted: Wanted) -> None:
    keep_part(wanted, b"x" * 1000)
    assert refused(downloader, wanted).code == "model_hash_mismatch"
    assert not wanted.part.exists()
    assert downloader.fetch(wanted, ignore)


def test_a_whole_part_needs_no_request(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    keep_part(wanted, BODY)
    assert downloader.fetch(wanted, ignore)
    assert provider.requests == []


@pytest.mark.parametrize("content", [BODY + b"!", b"x" * len(BODY)])
def test_a_whole_but_wrong_part_is_fetched_anew(
    downloader: Downloader, wanted: Wanted, provider: Provider, content: bytes
) -> None:
    keep_part(wanted, content)
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider) == [None]


def test_a_tampered_file_is_thrown_away(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    provider.respond = lambda _: Answer(200, BODY[:-1] + b"!")
    assert refused(downloader, wanted).code == "model_hash_mismatch"
    assert list(wanted.path.parent.iterdir()) == []
    assert len(provider.requests) == 1


def test_a_broken_download_goes_on_where_it_broke(
    downloader: Downloader, wanted: Wanted, provider: Provider, waits: Waits
) -> None:
    provider.script = [Answer(200, BODY[:5000], breaks=True), Answer(drops=True)]
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider)[0] is None
    assert ranges(provider)[1:] == ["bytes=5000-", "bytes=5000-"]
    assert waits == [0.5, 1.0]


def test_a_file_that_ends_early_goes_on(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    provider.script = [Answer(200, BODY[:5000])]
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider) == [None, "bytes=5000-"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_refusal_is_retried_as_late_as_asked(
    downloader: Downloader, wanted: Wanted, provider: Provider, waits: Waits, status: int
) -> None:
    provider.script = [Answer(status, headers={"Retry-After": "7"})]
    assert downloader.fetch(wanted, ignore)
    assert waits == [7.0]


@pytest.mark.parametrize(
    ("status", "code", "requests"),
    [(429, "rate_limited", 3), (401, "auth_failed", 1), (404, "upstream_error", 1)],
)
def test_a_lasting_refusal_is_said(
    downloader: Downloader,
    wanted: Wanted,
    provider: Provider,
    status: int,
    code: str,
    requests: int,
) -> None:
    provider.respond = lambda _: Answer(status)
    assert refused(downloader, wanted).code == code
    assert len(provider.requests) == requests


def test_a_range_that_cannot_be_served_starts_anew(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    keep_part(wanted)
    provider.script = [Answer(416)]
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider) == ["bytes=1000-", None]


@pytest.mark.parametrize("location", ["http://remote.example/x", "ftp://remote.example/x"])
def test_model_install_08_an_unsafe_redirect_is_not_followed(
    downloader: Downloader, wanted: Wanted, provider: Provider, location: str
) -> None:
    provider.respond = lambda _: Answer(302, headers={"Location": location})
    assert refused(downloader, wanted).code == "unsafe_redirect"
    assert len(provider.requests) == 1


def test_a_redirect_on_this_machine_keeps_the_range(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    keep_part(wanted)
    provider.script = [Answer(302, headers={"Location": "/elsewhere?signed=1"})]
    assert downloader.fetch(wanted, ignore)
    assert [request.path for request in provider.requests] == ["/model.bin", "/elsewhere?signed=1"]
    assert ranges(provider) == ["bytes=1000-", "bytes=1000-"]


def test_endless_redirects_end(downloader: Downloader, wanted: Wanted, provider: Provider) -> None:
    provider.respond = lambda _: Answer(302, headers={"Location": "/again"})
    assert refused(downloader, wanted).code == "redirect_refused"
    assert len(provider.requests) == 6


def test_model_install_09_a_longer_body_is_stopped(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    provider.respond = lambda _: Answer(200, BODY + b"!" * 100_000)
    assert refused(downloader, wanted).code == "response_too_large"
    assert list(wanted.path.parent.iterdir()) == []
    assert len(provider.requests) == 1


def test_model_install_13_the_time_of_a_file_covers_its_attempts(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    provider.script = [Answer(200, BODY[:5000], breaks=True)]
    moments = iter([0.0, 0.0, 901.0])
    slow = Downloader(
        downloader.client, Limits(total_s=900.0), wait=downloader.wait, clock=lambda: next(moments)
    )
    assert refused(slow, wanted).code == "timeout"
    assert wanted.part.read_bytes() == BODY[:5000]
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider) == [None, "bytes=5000-"]


def test_a_hanging_server_is_left_in_time(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    provider.script = [Answer(200, BODY[:5000], hangs=True)]
    quick = Downloader(downloader.client, Limits(total_s=0.5, retries=0), wait=downloader.wait)
    assert refused(quick, wanted).code == "timeout"
    assert wanted.part.read_bytes() == BODY[:5000]


def test_a_cancelled_download_keeps_its_part(
    downloader: Downloader, wanted: Wanted, provider: Provider
) -> None:
    def stop(_size: int) -> None:
        raise Cancelled()

    with pytest.raises(Cancelled):
        downloader.fetch(wanted, stop)
    kept = len(wanted.part.read_bytes())
    assert kept > 0
    assert downloader.fetch(wanted, ignore)
    assert ranges(provider)[1:] in ([f"bytes={kept}-"], [])
