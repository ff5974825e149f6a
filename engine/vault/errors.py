"""The errors of vaults. Messages never hold a key, a query or the text of a document."""

from __future__ import annotations

from engine.errors import EngineError


class VaultError(EngineError):
    """A vault refuses something, or a step of its work failed.

    Codes: ``invalid_utf8``, ``invalid_text``, ``unsupported_type``, ``vault_locked``,
    ``wrong_passphrase``, ``weak_passphrase``, ``sealed_damaged``, ``not_authorized``,
    ``vault_not_found``, ``index_too_large``, ``url_policy``, ``device_only_vault``,
    ``generation_not_configured``, ``auth_failed``, ``rate_limited``, ``upstream_error``,
    ``redirect_refused``, ``embedding_invalid_response``, ``rerank_invalid_response``,
    ``generation_invalid_response``, ``model_not_installed``, ``source_changed``, ``cancelled``,
    ``timeout``, ``needs_embedded``, ``vaultd_unavailable``, ``service_unusable``. ``reason``
    narrows a code down and may be empty.
    """

    code = "vault_error"

    def __init__(self, message: str = "", *, code: str, reason: str = "") -> None:
        super().__init__(message, code=code)
        self.reason = reason


class ConfigInvalid(EngineError):
    """A ``[rag]`` table is not as it must be. ``key`` is the dotted name of the culprit.

    Codes: ``unknown_key``, ``type``, ``out_of_range``, ``retries_out_of_range``, ``protocol``,
    ``json_mode``, ``env_name``, ``missing``, ``malformed``, the reasons of ``UrlBlocked`` and the
    codes of ``configured_proxy``.
    """

    code = "config_invalid"

    def __init__(self, key: str, message: str, *, code: str) -> None:
        super().__init__(f"{key}: {message}", code=code)
        self.key = key
        self.explanation = message
