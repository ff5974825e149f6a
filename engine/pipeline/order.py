"""From lists to one order: fusion, conversation, dates, priors."""

from __future__ import annotations

from collections.abc import Mapping

from engine.pipeline.run import Run, ranked
from engine.rank import conversation, dates, priors
from engine.rank.rrf import fuse
from engine.rank.scores import ScoreList, by_best, by_range, combine
from engine.text.when import span_of
from engine.types import Fusion, Match, Place

Ordered = list[tuple[int, float]]


def fused(run: Run) -> Ordered:
    """The candidates of both lists in one order, with what their places add to it."""
    rule, run.is_fused = run.tiers.fusion, True
    keyword_weight, vector_weight = rule.weights
    if rule.kind is Fusion.RRF:
        lists = [list(run.vector), list(run.keyword)]
        ordered = fuse(lists, k=rule.rrf_k, weights=[vector_weight, keyword_weight])
        run.stage("fuse", ranked(ordered), note=f"rrf k={rule.rrf_k}")
        return _with_priors(run, ordered, {})
    places = run.tiers.passages.places(dict.fromkeys([*run.vector, *run.keyword]))
    vector = ScoreList(
        by_range(list(run.vector.values())), vector_weight, _unknown_to_model(run, places)
    )
    keyword = ScoreList(by_best(list(run.keyword.values())), keyword_weight, _foreign(run, places))
    ordered = combine([vector, keyword])
    run.stage("fuse", ranked(ordered), note="scores")
    ordered, around = _in_conversation(run, ordered, dict(places))
    return _with_priors(run, _of_that_time(run, ordered), around)


def _foreign(run: Run, places: Mapping[int, Place]) -> set[int]:
    """Passages in another script than the query's: words cannot tell whether they answer it."""
    return {key for key, place in places.items() if place.language != run.language}


def _unknown_to_model(run: Run, places: Mapping[int, Place]) -> set[int]:
    known = run.tiers.languages
    if known is None:
        return set()
    return {key for key, place in places.items() if place.language not in known}


def _in_conversation(
    run: Run, ordered: Ordered, places: dict[int, Place]
) -> tuple[Ordered, dict[int, Place]]:
    # A neighbour need not hold the words that a match mode asks for.
    if not run.tiers.has_conversations or run.query.match is not Match.ANY:
        return ordered, places
    if not any(place.session for place in places.values()):
        return ordered, places
    passages = run.tiers.passages
    beside = passages.beside(places, run.scope)
    places.update(passages.places(conversation.neighbours(beside, places)))
    ordered = conversation.converse(ordered, places, beside, run.query.text)
    run.stage("conversation", ranked(ordered))
    return ordered, places


def _of_that_time(run: Run, ordered: Ordered) -> Ordered:
    """Memories of the time that the query names, before others and even without its words."""
    span = span_of(run.query.text, now_ms=run.scope.now_ms)
    if span is None or run.query.match is not Match.ANY:
        return ordered
    within = run.tiers.passages.dated(run.scope, span.start_ms, span.end_ms, run.tiers.depth)
    if within:
        ordered = dates.prefer(ordered, within)
    run.stage("dates", ranked(ordered) if within else ())
    return ordered


def _with_priors(run: Run, ordered: Ordered, places: Mapping[int, Place]) -> Ordered:
    if not run.tiers.priors.are_on:
        return ordered
    passages = run.tiers.passages
    places = {**places, **passages.places([key for key, _ in ordered if key not in places])}
    uses = passages.uses(places)
    ordered = priors.apply(ordered, places, uses, run.tiers.priors, now_ms=run.scope.now_ms)
    run.stage("priors", ranked(ordered))
    return ordered
