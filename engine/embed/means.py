"""Mean vectors by language that come with a model, for stores too small to have their own.

They are the means over the sentences of ``data/everyday.json``, which we wrote: everyday and
technical statements, the same in each language. Made anew by ``python -m engine.embed.means
FOLDER`` (the folder for repacked models) whenever the sentences or the weights change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from engine.embed import catalogue
from engine.embed.catalogue import ModelEntry
from engine.types import Purpose, Vector

_DATA: Final = files("engine.embed") / "data"


def packaged(entry: ModelEntry) -> Mapping[str, Vector]:
    """Means of a model by language, float32; empty for a model that is not centred."""
    if not entry.is_centred:
        return {}
    kept = _DATA / f"{entry.id}.means.json"
    if not kept.is_file():
        return {}
    stored = json.loads(kept.read_text(encoding="utf-8"))
    return {language: np.array(mean, np.float32) for language, mean in stored.items()}


def measured(entry: ModelEntry, models_dir: Path) -> Mapping[str, Vector]:
    """The means as the model gives them now, rounded to four digits as they are kept."""
    # Not at the top: a search needs the kept means only.
    from engine.embed import local
    from engine.embed.onnx import Use

    source = local.source(entry, models_dir, Use(template="means"))
    sentences = json.loads((_DATA / "everyday.json").read_text(encoding="utf-8"))
    return {
        language: np.round(source.embed(texts, purpose=Purpose.DOCUMENT).mean(axis=0), 4)
        for language, texts in sentences.items()
    }


def main(models_dir: Path) -> None:
    """Write the means of every centred model that packages bring."""
    for entry in catalogue.entries():
        if entry.is_centred and entry.is_packaged:
            means = {key: mean.tolist() for key, mean in measured(entry, models_dir).items()}
            text = json.dumps({key: [round(x, 4) for x in mean] for key, mean in means.items()})
            path = Path(str(_DATA)) / f"{entry.id}.means.json"
            path.write_text(text.replace("], ", "],\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
