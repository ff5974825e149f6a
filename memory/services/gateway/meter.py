"""The cost meter: tokens of memories in chats, by key and day, and the key's cap on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Sum
from django.utils.translation import gettext as _

from memory import measured
from memory.clock import now
from memory.errors import Invalid
from memory.models import ApiKey, InjectionDay
from memory.principal import Principal
from memory.services import access, audit

DAYS: Final = 30
MAX_DAILY: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What memory cost one key: today, and over the last 30 days."""

    key: ApiKey
    today: int
    month: int
    chats: int
    injected: int
    failures: int

    @property
    def is_used_up(self) -> bool:
        """Whether the key has reached its cap today."""
        return self.key.daily_tokens is not None and self.today >= self.key.daily_tokens


def allows(key: ApiKey, tokens: int, *, is_spent: bool) -> bool:
    """Whether a key may spend so many tokens more today; ``is_spent`` takes them at once.

    Only a capped key is asked about, and taken from, at this moment: of others the tokens are
    counted when the chat is over.
    """
    if key.daily_tokens is None:
        return True
    row = _row(key, now().date())
    if row.tokens + tokens > key.daily_tokens:
        return False
    if not is_spent:
        return True
    within = InjectionDay.objects.filter(pk=row.pk, tokens__lte=key.daily_tokens - tokens)
    return within.update(tokens=F("tokens") + tokens) == 1


def count(owner: ApiKey, *, tokens: int, is_injected: bool, has_failed: bool) -> None:
    """Count one chat; the tokens of a capped key have been taken already."""
    if is_injected:
        measured.injected_tokens(tokens)
    InjectionDay.objects.filter(pk=_row(owner, now().date()).pk).update(
        chats=F("chats") + 1,
        injected=F("injected") + int(is_injected),
        tokens=F("tokens") + (tokens if owner.daily_tokens is None else 0),
        failures=F("failures") + int(has_failed),
    )


def give_back(key: ApiKey, tokens: int) -> None:
    """Give a capped key the tokens back that were taken for a chat which reached nobody."""
    if key.daily_tokens is not None and tokens:
        rows = InjectionDay.objects.filter(pk=_row(key, now().date()).pk, tokens__gte=tokens)
        rows.update(tokens=F("tokens") - tokens)


def change_key(
    principal: Principal, reference: str, *, injection: str, daily_tokens: int | None
) -> ApiKey:
    """Say whether the chats of a key are given memories, and what these may cost in a day.

    Raises ``NotFound`` and ``Invalid``.
    """
    access.require(principal, "manage")
    if injection not in ApiKey.Injection.values:
        message = _("One of inherit, on and off.")
        raise Invalid(message, fields={"injection": message})
    if daily_tokens is not None and not 0 <= daily_tokens <= MAX_DAILY:
        message = _("A number from 0 to %(most)s.") % {"most": MAX_DAILY}
        raise Invalid(message, fields={"dailyTokens": message})
    key = access.find(reference)
    with transaction.atomic():
        key.injection, key.daily_tokens = injection, daily_tokens
        key.save(update_fields=["injection", "daily_tokens"])
        audit.record(principal, "key.gateway", owner=key, ids=[key.uid])
    return key


def figures(principal: Principal) -> list[Spent]:
    """What memory cost each key that a caller may see; of revoked ones, where it cost anything."""
    access.require(principal, "read")
    found = _of(access.choices(principal))
    return [one for one in found if one.chats or one.key.revoked_at is None]


def chatting(principal: Principal) -> list[Spent]:
    """The same of keys that have chatted or have a cap."""
    found = figures(principal)
    return [one for one in found if one.chats or one.key.daily_tokens is not None]


def of_key(key: ApiKey) -> Spent:
    """What memory cost one key."""
    return _of([key])[0]


def _of(keys: list[ApiKey]) -> list[Spent]:
    today = now().date()
    rows = InjectionDay.objects.filter(owner__in=keys)
    month = rows.filter(day__gte=today - timedelta(days=DAYS - 1)).values("owner")
    sums = month.annotate(
        all_tokens=Sum("tokens"),
        all_chats=Sum("chats"),
        all_injected=Sum("injected"),
        all_failures=Sum("failures"),
    )
    by_owner: dict[int, Mapping[str, Any]] = {
        row["owner"]: dict(row) for row in sums.order_by("owner")
    }
    of_today = dict(rows.filter(day=today).values_list("owner", "tokens"))
    return [_spent(key, by_owner.get(key.pk, {}), of_today.get(key.pk, 0)) for key in keys]


def _spent(key: ApiKey, sums: Mapping[str, Any], today: int) -> Spent:
    return Spent(
        key=key,
        today=today,
        month=sums.get("all_tokens", 0),
        chats=sums.get("all_chats", 0),
        injected=sums.get("all_injected", 0),
        failures=sums.get("all_failures", 0),
    )


def _row(owner: ApiKey, day: date) -> InjectionDay:
    return InjectionDay.objects.get_or_create(owner=owner, day=day)[0]
