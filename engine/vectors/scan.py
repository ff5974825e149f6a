"""The best rows for a query: a rough choice over coarse values, then exact scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.columns.table import Ints
from engine.types import Vector
from engine.vectors.centres import Centres
from engine.vectors.segment import Coarse, Codes, Doubles, Floats, Segment, coarsened, dots

FEW: Final = 256
"""So few rows are scored exactly at once."""
GATHER_BELOW: Final = 8
"""Below one row in this many, rows are gathered; above, all are scanned."""
ROUNDING_NOISE: Final = 0.2887
"""Standard deviation of a rounding error, in steps: sqrt(1/12)."""
SAFE: Final = 10
"""Rows within this many standard deviations of the last place are scored exactly."""
SMALLEST_NORM: Final = 1e-12
CHUNK: Final = 8192


@dataclass(frozen=True, slots=True)
class Probe:
    """A query made ready. ``means`` holds a row for each language code, or is None: plain
    cosines."""

    vector: Doubles
    coarse: Coarse
    step: float
    offset: float
    means: Doubles | None
    mean_dots: Floats

    @classmethod
    def of(
        cls,
        query: Vector,
        language: str,
        *,
        centres: Centres | None,
        shift: Vector,
        languages: Mapping[str, int],
    ) -> Probe:
        """A query of unit length; ``centres`` None leaves it and the rows as they are."""
        if centres is not None:
            query = centres.centred(query, language)
        vector = query.astype(np.float64)
        coarse, step = coarsened(vector)
        means = centres.table(languages, query.size) if centres is not None else None
        mean_dots = means @ vector if means is not None else np.zeros(1)
        return cls(
            vector=vector,
            coarse=coarse,
            step=step,
            offset=float(shift.astype(np.float64) @ vector),
            means=means,
            mean_dots=mean_dots.astype(np.float32),
        )


def promising(part: Segment, rows: Ints, probe: Probe, limit: int) -> Ints:
    """Those of ``rows`` that may be among the best ``limit``, as far as rough scores tell."""
    if rows.size <= max(FEW, limit):
        return rows
    if rows.size * GATHER_BELOW < len(part):
        products = dots(part.coarse[rows], probe.coarse)
        step, spread, language = part.step[rows], part.spread[rows], part.language[rows]
    else:
        products = dots(part.coarse, probe.coarse)
        step, spread, language = part.step, part.spread, part.language
        if rows.size < len(part):
            products, step = products[rows], step[rows]
            spread, language = spread[rows], language[rows]
    rough, noise = _rough(products, step, spread, language, probe)
    place = rows.size - limit
    last = np.partition(rough, place)[place]
    within: Ints = rows[rough >= last - SAFE * noise]
    return within


def _rough(
    products: Floats, step: Floats, spread: Floats, language: Codes, probe: Probe
) -> tuple[Floats, float]:
    scores = products * step
    scores *= np.float32(probe.step)
    typical = float(step.mean())
    if probe.means is None:
        return scores, ROUNDING_NOISE * float(np.hypot(typical, probe.step))
    scores += np.float32(probe.offset)
    scores -= probe.mean_dots[language] if len(probe.mean_dots) > 1 else probe.mean_dots[0]
    scores *= spread
    noise = float(np.hypot(typical * float(spread.mean()), probe.step))
    return scores, ROUNDING_NOISE * noise


def exact(part: Segment, rows: Ints, probe: Probe) -> Doubles:
    """Cosines of rows in the space searched. Equal vectors get equal scores, wherever they lie."""
    scores = np.empty(rows.size, np.float64)
    for start in range(0, rows.size, CHUNK):
        chosen = rows[start : start + CHUNK]
        vectors = part.matrix[chosen].astype(np.float64)
        if probe.means is None:
            products = (vectors * probe.vector).sum(axis=1)
        else:
            vectors -= probe.means[part.language[chosen]]
            norms = np.sqrt((vectors * vectors).sum(axis=1))
            products = (vectors * probe.vector).sum(axis=1) / np.maximum(norms, SMALLEST_NORM)
        scores[start : start + CHUNK] = products
    return np.clip(scores, -1.0, 1.0)
