"""What the pages are made of stays small, and nothing in it needs an inline script or style."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def packed(*files: Path) -> int:
    return len(gzip.compress(b"".join(file.read_bytes() for file in files), 9))


def test_our_style_sheets_stay_within_12_kilobytes() -> None:
    assert packed(*(ROOT / "static" / "css").glob("*.css")) <= 12 * 1024


def test_our_scripts_stay_within_6_kilobytes() -> None:
    assert packed(*(ROOT / "static" / "js").glob("*.js")) <= 6 * 1024


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_is_short_and_holds_nothing_inline(template: Path) -> None:
    text = template.read_text()
    assert len(text.splitlines()) <= 150
    assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?![^>]*\ssrc=)|javascript:", text)
    assert "hx-on" not in text
    assert "hx-vals='js:" not in text


def test_colours_are_tokens_everywhere_else() -> None:
    sheets = sorted((ROOT / "static" / "css").glob("*.css"))
    assert len(sheets) > 1
    for sheet in sheets:
        has_colours = re.search(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text())
        assert bool(has_colours) is (sheet.name == "tokens.css"), sheet.name


def test_every_icon_that_is_used_exists() -> None:
    sprite = (ROOT / "static" / "icons.svg").read_text()
    used = {name for file in TEMPLATES for name in re.findall(r'{% icon "(\w+)"', file.read_text())}
    assert used <= set(re.findall(r'<symbol id="(\w+)"', sprite))
    assert used
