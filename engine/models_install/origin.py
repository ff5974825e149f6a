"""Where the files of a model are downloaded from."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from engine.embed.catalogue import ModelEntry
from engine.models_install.errors import InstallFailed
from engine.net.errors import UrlBlocked
from engine.net.policy import UrlPolicy, check_url

HUB = "https://huggingface.co"

DOWNLOADS = UrlPolicy(require_https=True)
"""HTTPS, or HTTP from this machine. A mirror in the local network is fine."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A hub, or a mirror that has the exact pinned files of one model under its base URL."""

    hub: str = HUB
    mirror: str = ""

    def url(self, entry: ModelEntry, path: str) -> str:
        """The URL of a file at the pinned revision. Raises ``InstallFailed`` (``url_blocked``)."""
        base = self.mirror or f"{self.hub.rstrip('/')}/{entry.repository}/resolve/{entry.revision}"
        url = f"{base.rstrip('/')}/{quote(path)}"
        try:
            check_url(url, DOWNLOADS)
        except UrlBlocked as error:
            raise InstallFailed(str(error), code="url_blocked") from error
        return url
