"""What a status means and how long to wait. Ids are those of the case file."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.net.client import Limits
from engine.net.errors import HttpFailed
from engine.net.retry import delay_ms, outcome
from engine.net.strict_json import parse


@pytest.mark.parametrize(
    ("status", "error", "is_retried"),
    [
        (200, "", False),
        (204, "", False),
        (301, "redirect_refused", False),
        (307, "redirect_refused", False),
        (400, "upstream_error", False),
        (401, "auth_failed", False),
        (403, "auth_failed", False),
        (404, "upstream_error", False),
        (408, "upstream_error", False),
        (413, "upstream_error", False),
        (429, "rate_limited", True),
        (500, "upstream_error", True),
        (501, "upstream_error", False),
        (502, "upstream_error", True),
        (503, "upstream_error", True),
        (504, "upstream_error", True),
    ],
)
def test_http_status(status: int, error: str, is_retried: bool) -> None:
    assert (outcome(status).error, outcome(status).is_retried) == (error, is_retried)


@pytest.mark.parametrize(
    ("retry_index", "retry_after", "wanted"),
    [
        pytest.param(0, None, 500, id="retry_delay-01"),
        pytest.param(2, None, 2000, id="retry_delay-03"),
        pytest.param(4, None, 8000, id="retry_delay-05"),
        pytest.param(0, "3", 3000, id="retry_delay-06"),
        pytest.param(0, "30", 30_000, id="retry_delay-07"),
        pytest.param(0, "120", 30_000, id="retry_delay-09"),
        pytest.param(0, "0", 500, id="retry_delay-10"),
        pytest.param(1, "1", 1000, id="retry_delay-11"),
        pytest.param(0, "-5", 500, id="retry_delay-12"),
        pytest.param(0, "2.5", 500, id="retry_delay-13"),
        pytest.param(0, "abc", 500, id="retry_delay-14"),
        pytest.param(0, "", 500, id="retry_delay-15"),
        pytest.param(0, "Wed, 21 Oct 2026 07:28:00 GMT", 500, id="retry_delay-17"),
        pytest.param(0, "9" * 5000, 30_000, id="retry_delay-18"),
        pytest.param(0, "³", 500, id="a digit that is no number"),
    ],
)
def test_retry_delay(retry_index: int, retry_after: str | None, wanted: int) -> None:
    assert delay_ms(retry_index, backoff_ms=500, retry_after=retry_after) == wanted


@pytest.mark.parametrize("retries", [-1, 6])
def test_retry_sequence_15_retries_are_zero_to_five(retries: int) -> None:
    with pytest.raises(EngineError) as caught:
        Limits(retries=retries)
    assert caught.value.code == "retries_out_of_range"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[NaN]", b"[Infinity]", b"[1e999]", b"\xff", b"[" * 100_000, b"[1", b"1 2"],
)
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(HttpFailed) as caught:
        parse(body)
    assert caught.value.code == "invalid_response"


def test_json_is_parsed() -> None:
    assert parse('{"a": [1, 2.5, "字", null, true]}'.encode()) == {"a": [1, 2.5, "字", None, True]}
