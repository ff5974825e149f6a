"""User-owned tables and the relational part of the derived ones."""

from memory.models.access import ApiKey, SignInLink
from memory.models.audit import AuditEntry, RetrievalCount
from memory.models.backend import BackendCopy
from memory.models.inbox import ExtractionDay, InboxItem
from memory.models.index import Passage, PassageChange, VaultChunk, VectorIndex, VectorMark
from memory.models.installation import InstallationFact, UploadPart
from memory.models.job import Job
from memory.models.memory import Compaction, Memory, MemoryRevision, MemoryUse
from memory.models.provider import Provider
from memory.models.settings import EngineSettings
from memory.models.trace import InjectionDay, Trace
from memory.models.vault import Vault, VaultAsset, VaultAssetRevision, VaultGrant
from memory.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "ApiKey",
    "AuditEntry",
    "BackendCopy",
    "Compaction",
    "EngineSettings",
    "ExtractionDay",
    "InboxItem",
    "InjectionDay",
    "InstallationFact",
    "Job",
    "Memory",
    "MemoryRevision",
    "MemoryUse",
    "Passage",
    "PassageChange",
    "Provider",
    "RetrievalCount",
    "SignInLink",
    "Trace",
    "UploadPart",
    "Vault",
    "VaultAsset",
    "VaultAssetRevision",
    "VaultChunk",
    "VaultGrant",
    "VectorIndex",
    "VectorMark",
    "Webhook",
    "WebhookDelivery",
]
