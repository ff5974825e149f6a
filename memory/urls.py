"""Addresses of the studio."""

from __future__ import annotations

from django.urls import path

from memory.views import (
    compact,
    engine,
    exchange,
    jobs,
    keys,
    memories,
    memory_edit,
    playground,
    preferences,
    qdrant,
    signin,
)

urlpatterns = [
    path("", memories.index, name="memories"),
    path("memories/", memories.index),
    path("memories/add/", memory_edit.add, name="memory-add"),
    path("memories/bulk/", memory_edit.bulk, name="memories-bulk"),
    path("memories/export/", exchange.export, name="memories-export"),
    path("memories/import/", exchange.import_file, name="memories-import"),
    path("memories/compact/", compact.compact, name="compact"),
    path("memories/<uuid:memory_id>/edit/", memory_edit.edit, name="memory-edit"),
    path("memories/<uuid:memory_id>/row/", memory_edit.edit_row, name="memory-row"),
    path(
        "memories/<uuid:memory_id>/revert/<int:revision>/",
        memory_edit.revert,
        name="memory-revert",
    ),
    path("compactions/<str:compaction_id>/undo/", compact.undo, name="compaction-undo"),
    path("playground/", playground.index, name="playground"),
    path("engine/", engine.index, name="engine"),
    path("engine/settings/", engine.save_settings, name="settings-save"),
    path("engine/qdrant/", qdrant.save, name="qdrant-save"),
    path("engine/qdrant/test/", qdrant.test, name="qdrant-test"),
    path("engine/qdrant/search/", qdrant.search, name="qdrant-search"),
    path("engine/qdrant/clean-up/", qdrant.clean_up, name="qdrant-clean-up"),
    path("engine/qdrant/build/", qdrant.build, name="qdrant-build"),
    path("engine/password/", engine.save_password, name="password-save"),
    path("engine/reindex/", engine.start_reindex, name="reindex-start"),
    path("engine/rollback/", engine.roll_back, name="engine-rollback"),
    path("engine/retired/drop/", engine.drop_retired, name="retired-drop"),
    path("engine/keys/add/", keys.add, name="key-add"),
    path("engine/keys/<uuid:uid>/rotate/", keys.rotate, name="key-rotate"),
    path("engine/keys/<uuid:uid>/revoke/", keys.revoke, name="key-revoke"),
    path("health/check/", engine.check_health, name="health-check"),
    path("jobs/<uuid:job_id>/", jobs.show, name="job"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="job-cancel"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="job-retry"),
    path("preferences/", preferences.save, name="preferences"),
    path("shortcuts/", preferences.shortcuts, name="shortcuts"),
    path("signin/", signin.sign_in, name="signin"),
    path("signin/<str:token>/", signin.sign_in_link, name="signin-link"),
    path("signout/", signin.sign_out, name="signout"),
]
