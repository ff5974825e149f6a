"""A client of other systems' protocols, in the process of the test."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from memory.models import ApiKey
from memory.principal import SYSTEM
from memory.services import keys


class CompatClient:
    """Sends JSON with a key of ours as a client of another system would."""

    def __init__(self, secret: str | None, scheme: str = "Token") -> None:
        self._client = Client()
        named = {"X-Api-Key": secret or ""} if scheme == "X-Api-Key" else {}
        self._headers = named or {"Authorization": f"{scheme} {secret}"} if secret else {}

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer, which has ``status_code`` and ``json()``."""
        content: dict[str, Any] = {"headers": self._headers}
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body)
            content |= {"data": data, "content_type": "application/json"}
        return self._client.generic(method, path, **content, query_params=query)

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """What a call that works answers."""
        answer = self.call(method, path, body, **query)
        assert answer.status_code in (200, 204), answer.content
        return answer.json() if answer.content else None

    def refused(self, status: int, method: str, path: str, body: Any = None, **query: Any) -> str:
        """The words of a call that is refused, after checking their shape."""
        answer = self.call(method, path, body, **query)
        assert answer.status_code == status, answer.content
        document = answer.json()
        assert list(document) == ["detail"]
        assert isinstance(document["detail"], str)
        assert document["detail"]
        assert "Traceback" not in document["detail"]
        detail: str = document["detail"]
        return detail


def client(name: str, *scopes: str, scheme: str = "Token") -> CompatClient:
    """A client with a secret of a key, which is made when there is none with this name."""
    key = ApiKey.objects.filter(name=name).first()
    if key is not None:
        return CompatClient(keys.rotate(SYSTEM, str(key.uid))[1], scheme)
    made = keys.create(SYSTEM, name, scopes=scopes or ("read", "write"))
    return CompatClient(made[1], scheme)


def remembered(alice: CompatClient, text: str, **fields: Any) -> str:
    """Add one memory as it is, for the user ``ann`` unless said otherwise; its id."""
    body = {"messages": text, "infer": False, "user_id": "ann", **fields}
    added = alice.ask("POST", "/v3/memories/add/", body)
    return str(added["results"][0]["id"])
