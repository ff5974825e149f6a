"""What the documents promise is there, and what is there is documented."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands

from memory.cases.behaviours import test_names as names_of_tests
from memory.chat_settings import CHAT_FIELDS
from memory.stored_settings import FIELDS
from memory.vault_settings import VAULT_FIELDS

ROOT = Path(settings.BASE_DIR)
CONFIGURATION = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
READ = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def test_every_variable_is_in_the_configuration_and_the_example() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "memstudio").glob("*.py")]
    names = {name for source in sources for name in READ.findall(source)}
    assert {"MEMORY_STUDIO_HOME", "MEMORY_RRF_K", "DATABASE_URL"} <= names
    assert [name for name in sorted(names) if f"`{name}" not in CONFIGURATION] == []
    assert [name for name in sorted(names) if name not in EXAMPLE] == []


def test_every_setting_is_in_the_configuration() -> None:
    assert [entry.api for entry in FIELDS if f"`{entry.api}`" not in CONFIGURATION] == []


def test_every_setting_of_chats_is_in_the_page_of_the_gateway() -> None:
    page = (ROOT / "docs/gateway.md").read_text(encoding="utf-8")
    assert [entry.api for entry in CHAT_FIELDS if f"| `{entry.api}` |" not in page] == []


def test_every_setting_of_vaults_is_in_their_page() -> None:
    page = (ROOT / "docs/vaults.md").read_text(encoding="utf-8")
    assert [entry.api for entry in VAULT_FIELDS if f"| `{entry.api}` |" not in page] == []


def test_links_between_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_command_that_is_named_is_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"manage\.py ([a-z_]+)", page.read_text(encoding="utf-8"))
    }
    assert {"backup", "memory", "mcp"} <= {name for _page, name in named}
    assert sorted(pair for pair in named if pair[1] not in get_commands()) == []


def test_every_test_that_a_document_names_is_there() -> None:
    there = {(Path(where).name, name) for where, name in names_of_tests(ROOT)}
    named = {
        (page.name, *pair)
        for page in (ROOT / "docs").glob("*.md")
        for pair in re.findall(r"`([\w/]+\.py)::(test_\w+)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert sorted(entry for entry in named if entry[1:] not in there) == []
