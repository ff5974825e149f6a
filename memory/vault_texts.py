"""What a vault refuses, in the reader's language. No text holds a key, a query or a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.vault.errors import VaultError
from memory.errors import ServiceError, from_engine

TEXTS: Final[Mapping[str, Promise]] = {
    "vault_locked": gettext_lazy("The vault is locked."),
    "wrong_passphrase": gettext_lazy("This passphrase or recovery key does not open the vault."),
    "weak_passphrase": gettext_lazy("A passphrase of 8 to 1,024 characters is needed."),
    "needs_embedded": gettext_lazy(
        "Sealed vaults need one process that keeps their keys: the studio on SQLite, or vaultd."
    ),
    "vaultd_unavailable": gettext_lazy(
        "The process that keeps the keys of sealed vaults (vaultd) does not answer."
    ),
    "sealed_damaged": gettext_lazy("The sealed text is damaged and cannot be read."),
    "index_too_large": gettext_lazy("The vault is too large for its index in memory."),
    "invalid_utf8": gettext_lazy("This is not UTF-8 text; save it as UTF-8 first."),
    "invalid_text": gettext_lazy("There is no text in it that can be stored."),
    "unsupported_type": gettext_lazy(
        "Only UTF-8 text and Markdown are taken; convert this file to text first."
    ),
    "source_changed": gettext_lazy("The vault’s content changed meanwhile; nothing is shown."),
    "cancelled": gettext_lazy("The vault’s rules changed meanwhile; nothing is shown."),
    "not_authorized": gettext_lazy("Your access to the vault ended meanwhile; nothing is shown."),
    "device_only_vault": gettext_lazy(
        "This vault is for this device only, and a service elsewhere is configured."
    ),
    "url_policy": gettext_lazy("The address of the configured service is not allowed."),
    "generation_not_configured": gettext_lazy("No service that writes answers is configured."),
    "generation_invalid_response": gettext_lazy(
        "The service answered with something that cites no existing passage; it is not shown."
    ),
    "embedding_invalid_response": gettext_lazy("The embedding service gave no usable answer."),
    "rerank_invalid_response": gettext_lazy("The reranking service gave no usable order."),
    "auth_failed": gettext_lazy("The service refused the configured key."),
    "upstream_error": gettext_lazy("The service failed."),
    "service_unusable": gettext_lazy("The chosen service cannot be asked as it is set up."),
    "redirect_refused": gettext_lazy("The service redirected elsewhere; that is refused."),
    "timeout": gettext_lazy("It took too long; what was made is kept for the next try."),
    "model_not_installed": gettext_lazy(
        "No embedding model is installed; search by keywords works."
    ),
}
SERVICES_CHANGED: Final = gettext_lazy(
    "The services of vaults were changed meanwhile; nothing is shown."
)
PROBLEMS: Final[Mapping[str, Promise]] = {
    "no_provider": gettext_lazy("No provider has the name before the slash."),
    "provider_off": gettext_lazy("The provider is switched off or not set up to its end."),
    "provider_key": gettext_lazy("The provider has no key."),
    "no_embeddings": gettext_lazy("The provider has no embeddings."),
    "no_reranking": gettext_lazy("The provider has no reranking."),
    "no_chat": gettext_lazy("This provider does not chat."),
}
"""Why a service that was chosen for vaults cannot be asked."""
AT_PASSPHRASE: Final = frozenset({"wrong_passphrase", "weak_passphrase"})


def told(error: VaultError) -> ServiceError:
    """The refusal as the studio shows it; one without words of ours keeps the engine's."""
    plain = from_engine(error)
    text = SERVICES_CHANGED if error.reason == "services" else TEXTS.get(error.code)
    if error.reason == "passphrase" or text is None:
        return plain
    message = str(text)
    if error.code == "index_too_large" and error.reason:
        message = f"{message} ({error.reason})"
    elif error.code == "unsupported_type":
        start = error.reason.removeprefix("starts with ")
        message = f"{message} {_('It begins with %(start)s.') % {'start': start}}"
    elif error.reason in PROBLEMS:
        message = f"{message} {problem(error.reason)}"
    fields = {"passphrase": message} if error.code in AT_PASSPHRASE else {}
    return type(plain)(message, code=plain.code, fields=fields)


def problem(code: str) -> str:
    """Why a service that was chosen for vaults cannot be asked."""
    text = PROBLEMS.get(code)
    return str(text) if text else _("This address cannot be called (%(code)s).") % {"code": code}
