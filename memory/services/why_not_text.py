"""What became of an expected memory, in sentences of the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.types import Mode
from memory.services.why_not import WhyNot
from memory.services.why_not_lists import ListPlace
from memory.templatetags.studio import num

REASONS: Final[Mapping[str, Promise]] = {
    "trashed": gettext_lazy("It is in the trash, out of every index."),
    "archived": gettext_lazy("It was archived by a compaction; its summary answers instead."),
    "other_owner": gettext_lazy("It belongs to another API key than the one searched."),
    "expired": gettext_lazy("Its expiry has passed."),
    "retention": gettext_lazy("It is past its retention: hidden until it is edited or pinned."),
    "decayed": gettext_lazy("Typed decay hides it: it was not used for too long."),
    "other_session": gettext_lazy("It belongs to another session than the one searched."),
    "other_type": gettext_lazy("It is of another type than those searched."),
    "filtered": gettext_lazy("Its metadata do not match the filter."),
    "not_indexed": gettext_lazy("It is not indexed."),
    "not_all_words": gettext_lazy("It does not hold all words of the query."),
    "no_phrase": gettext_lazy("It does not hold the query as a phrase."),
    "no_words": gettext_lazy("It holds none of the query's words."),
    "no_vector": gettext_lazy(
        "It has no vector yet and holds none of the query's words: it waits to be embedded."
    ),
    "not_run": gettext_lazy("No search could run."),
    "gone": gettext_lazy("It was removed while the search ran."),
    "same_memory": gettext_lazy("Another piece of it ranks higher."),
}
PLACES: Final[Mapping[str, Promise]] = {
    "": gettext_lazy("brought it"),
    "below_depth": gettext_lazy("ranks it too low"),
    "no_words": gettext_lazy("finds none of the query's words in it"),
    "not_all_words": gettext_lazy("does not find all words in it"),
    "no_phrase": gettext_lazy("does not find the phrase in it"),
    "no_vector": gettext_lazy("has no vector of it yet"),
    "not_run": gettext_lazy("did not run"),
}
HINTS: Final[Mapping[str, Promise]] = {
    "restore": gettext_lazy("Restore it."),
    "undo_compaction": gettext_lazy("Undo the compaction on the Engine page."),
    "choose_owner": gettext_lazy("Search the memories of its own key."),
    "extend": gettext_lazy("Give it a later expiry, or none."),
    "pin": gettext_lazy("Pin it, or lengthen the retention of its type."),
    "all_sessions": gettext_lazy("Search all sessions."),
    "all_types": gettext_lazy("Search all types."),
    "no_filter": gettext_lazy("Search without the filter, or change the metadata."),
    "reindex": gettext_lazy("Reindex what changed on the Engine page."),
    "match_any": gettext_lazy("Let any word match."),
    "use_meaning": gettext_lazy("Search by meaning as well: strategy hybrid."),
    "other_words": gettext_lazy("Ask in words that the memory uses, or add them to it."),
    "more_specific": gettext_lazy("Ask more precisely: many memories fit better."),
    "raise_limit": gettext_lazy("Raise the number of hits."),
    "raise_budget": gettext_lazy("Raise the token budget, or shorten the memory."),
    "lower_floor": gettext_lazy("Lower the relevance floor in the settings."),
    "change_rerank": gettext_lazy("Try another reranker, or none, in the settings."),
}
_HINTS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "trashed": ("restore",),
    "archived": ("undo_compaction",),
    "other_owner": ("choose_owner",),
    "expired": ("extend",),
    "retention": ("pin",),
    "decayed": ("pin",),
    "other_session": ("all_sessions",),
    "other_type": ("all_types",),
    "filtered": ("no_filter",),
    "not_indexed": ("reindex",),
    "not_all_words": ("match_any",),
    "no_phrase": ("match_any",),
    "no_words": ("use_meaning", "other_words"),
    "no_vector": ("reindex", "other_words"),
    "below_depth": ("use_meaning", "more_specific"),
    "limit": ("raise_limit", "more_specific"),
    "budget": ("raise_budget",),
    "below_floor": ("lower_floor", "other_words"),
    "reranked_below": ("raise_limit", "change_rerank"),
}


def sentence(told: WhyNot) -> str:
    """What happened, in one or two sentences with the numbers that matter."""
    if told.found:
        return _("It was found: hit %(rank)s.") % {"rank": told.rank}
    write = _WITH_NUMBERS.get(told.reason)
    return write(told) if write else str(REASONS.get(told.reason, told.reason))


def hints(told: WhyNot) -> list[tuple[str, str]]:
    """What would bring it, as codes and sentences."""
    codes = () if told.found else _HINTS_OF.get(told.reason, ())
    searches_meaning = told.request.mode in (Mode.VECTOR, Mode.HYBRID)
    kept = [code for code in codes if code != "use_meaning" or not searches_meaning]
    return [(code, str(HINTS[code])) for code in kept]


def place_text(place: ListPlace) -> str:
    """What one list did with it."""
    return str(PLACES.get(place.reason, place.reason))


def _below_depth(told: WhyNot) -> str:
    numbers = told.numbers
    if numbers.rank is None:
        return _("It ranks below every candidate that was looked at.")
    return _("It ranks %(rank)s; only the first %(depth)s of a list go on.") % {
        "rank": num(numbers.rank),
        "depth": num(numbers.last_rank),
    }


def _limit(told: WhyNot) -> str:
    numbers = told.numbers
    return _("It ranks %(rank)s and the limit is %(limit)s: %(short)s of score were missing.") % {
        "rank": num(numbers.rank),
        "limit": num(numbers.last_rank),
        "short": num(numbers.short_by, 4),
    }


def _reranked(told: WhyNot) -> str:
    return _("Reranking moved it to place %(rank)s, beyond the limit of %(limit)s.") % {
        "rank": num(told.numbers.rank),
        "limit": num(told.numbers.last_rank),
    }


def _budget(told: WhyNot) -> str:
    numbers = told.numbers
    return _("It costs %(tokens)s tokens, but only %(left)s of the budget were left.") % {
        "tokens": num(numbers.tokens),
        "left": num(numbers.left),
    }


def _below_floor(told: WhyNot) -> str:
    return _(
        "Nothing is near enough to the query: its score is %(score)s, the floor is %(floor)s."
    ) % {"score": num(told.numbers.score, 3), "floor": num(told.numbers.last_score, 3)}


_WITH_NUMBERS: Final = {
    "below_depth": _below_depth,
    "limit": _limit,
    "reranked_below": _reranked,
    "budget": _budget,
    "below_floor": _below_floor,
}
