"""The REST API: one NinjaAPI, one router for each group of routes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required

from memory.api import (
    audit,
    backends,
    batch,
    engine,
    errors,
    exchange,
    explain,
    extraction,
    gateway,
    inbox,
    jobs,
    keys,
    memories,
    providers,
    qdrant,
    settings,
    vault_assets,
    vault_services,
    vaults,
    webhooks,
)
from memory.api.auth import BearerKey, StudioSession
from memory.api.document import StudioApi

api = StudioApi(
    title="Memory Studio",
    version="1",
    description="Long-term memory for LLM applications.",
    auth=[BearerKey(), StudioSession()],
    docs_decorator=login_required,
    parser=errors.JsonParser(),
    urls_namespace="api",
)
errors.register(api)
# Routes with a fixed name come before the one that takes any id.
api.add_router("/memory", engine.router)
api.add_router("/memory", explain.router)
api.add_router("/memory", backends.router)
api.add_router("/memory", batch.router)
api.add_router("/memory", exchange.router)
api.add_router("/memory", extraction.router)
api.add_router("/memory", memories.router)
api.add_router("/settings", settings.router)
api.add_router("/settings", qdrant.router)
api.add_router("/settings", vault_services.router)
api.add_router("/providers", providers.router)
api.add_router("/settings", gateway.settings_router)
api.add_router("/gateway", gateway.router)
api.add_router("/traces", gateway.traces_router)
api.add_router("/settings", extraction.settings_router)
api.add_router("/inbox", inbox.router)
api.add_router("/keys", keys.router)
api.add_router("/jobs", jobs.router)
api.add_router("/audit", audit.router)
api.add_router("/webhooks", webhooks.router)
api.add_router("/vaults", vaults.router)
api.add_router("/vaults", vault_assets.router)
