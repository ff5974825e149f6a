"""REST as commands use it, and the studio they talk to: a remote one, the one that runs on this
home, or none: then this process answers itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

import httpx2
from django.conf import settings

from memstudio import address, env

TIMEOUT_S: Final = 120.0
BLOCK_BYTES: Final = 1 << 18
REFUSED, USAGE, DENIED, MISSING, CONFLICT, UNREACHABLE = 1, 2, 3, 4, 5, 6
"""Exit statuses, beside 0 and 130 (Ctrl-C)."""
_STATUS: Final[Mapping[int, int]] = {
    401: DENIED,
    403: DENIED,
    404: MISSING,
    409: CONFLICT,
    422: USAGE,
    503: UNREACHABLE,
}


class Refused(Exception):
    """What a command could not do: an exit status, and the error in the shape of REST."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.status = status
        self.error = dict(error)

    @property
    def sentence(self) -> str:
        """The message with the fields it is about."""
        fields = self.error.get("fields") or {}
        details = [f"{name}: {text}" for name, text in fields.items() if text != str(self)]
        return " ".join([str(self), *details])


@dataclass(frozen=True, slots=True)
class Api:
    """REST for one caller. ``is_local`` when this process answers itself."""

    client: httpx2.Client
    secret: Callable[[], str]
    is_local: bool = False

    @property
    def keeps_keys(self) -> bool:
        """Whether a vault would be unlocked in this process, and only as long as it lives."""
        return self.is_local and not settings.MEMORY_STUDIO_VAULTD

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Send a request below ``/api/``; the decoded answer. Raises ``Refused``."""
        response = self._send(method, path, query, json=body)
        answer = _decoded(response)
        if response.status_code >= 400 or answer is None:
            raise _refusal(response, answer)
        return answer

    def upload(self, path: str, file: IO[bytes], **query: Any) -> Any:
        """Send a file as the body; the decoded answer. Raises ``Refused``."""
        blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
        response = self._send("POST", path, query, content=blocks)
        answer = _decoded(response)
        if response.status_code >= 400 or answer is None:
            raise _refusal(response, answer)
        return answer

    def download(self, path: str, **query: Any) -> Iterator[bytes]:
        """The body of an answer in pieces. Raises ``Refused``."""
        sent = {name: value for name, value in query.items() if value is not None}
        headers = {"Authorization": f"Bearer {self.secret()}"}
        try:
            with self.client.stream(
                "GET", f"/api/{path}", params=sent, headers=headers
            ) as response:
                if response.status_code >= 400:
                    response.read()
                    raise _refusal(response, _decoded(response))
                yield from response.iter_bytes()
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None

    def _send(self, method: str, path: str, query: Mapping[str, Any], **body: Any) -> Any:
        sent = {name: value for name, value in query.items() if value is not None}
        headers = {"Authorization": f"Bearer {self.secret()}"}
        if "content" in body:
            headers["Content-Type"] = "application/octet-stream"
        try:
            return self.client.request(method, f"/api/{path}", params=sent, headers=headers, **body)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx2.TransportError) -> Refused:
        message = f"The studio at {self.client.base_url} does not answer ({error})."
        return Refused(UNREACHABLE, {"code": "unreachable", "message": message})


def acting_as(given: str) -> str:
    """Whom a command acts as: the option, else the environment, else an empty text."""
    return given.strip() or env.secret("MEMORY_STUDIO_KEY") or ""


@contextlib.contextmanager
def connected(url: str, acting: str) -> Iterator[Api]:
    """REST at ``url``; without one, that of the studio of this home.

    ``acting`` is a secret, or for a studio of this machine the name or id of a key; an empty text
    is everyone's keeper: the person at this machine.
    """
    url = url or env.text("MEMORY_STUDIO_URL")
    acting = acting_as(acting)
    if url:
        with httpx2.Client(base_url=url, timeout=TIMEOUT_S) as client:
            yield Api(client, lambda: acting)
        return
    with _own_client() as (client, is_local):
        yield Api(client, _secret_of(acting), is_local)


@contextlib.contextmanager
def _own_client() -> Iterator[tuple[httpx2.Client, bool]]:
    running = address.find(settings.MEMORY_STUDIO_HOME)
    if running:
        with httpx2.Client(base_url=running, timeout=TIMEOUT_S, trust_env=False) as client:
            yield client, False
        return
    from memory.services import signin
    from memstudio import startup
    from memstudio.wsgi import application

    startup.prepare()
    signin.first_start()
    transport: httpx2.BaseTransport = httpx2.WSGITransport(app=application)
    if settings.MEMORY_STUDIO_VAULTD:
        from memstudio.vaultd.command import ThroughVaultd

        transport = ThroughVaultd(settings.MEMORY_STUDIO_VAULTD, transport)
    with httpx2.Client(transport=transport, base_url="http://localhost") as client:
        yield client, True


def _secret_of(acting: str) -> Callable[[], str]:
    from memory.services import keys

    if acting.startswith(keys.PREFIX):
        return lambda: acting
    return lambda: keys.local_pass(acting)


def _decoded(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _refusal(response: httpx2.Response, answer: Any) -> Refused:
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        message = f"{response.url} gave no answer of a studio (status {response.status_code})."
        return Refused(UNREACHABLE, {"code": "not_a_studio", "message": message})
    return Refused(_STATUS.get(response.status_code, REFUSED), error)
