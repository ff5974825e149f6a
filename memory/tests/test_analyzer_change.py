"""A new analyzer version has the keyword index written again at the next start."""

from __future__ import annotations

from memory import wiring
from memory.models import Job
from memory.principal import Principal
from memory.services import reindex
from memory.tests.conftest import Remember, Work
from memory.tests.derived import keyword_name


def test_an_index_of_an_older_analyzer_is_renewed_once(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "the kettle is descaled every month")
    work()
    assert reindex.renew_keywords() is False
    wiring.connect().execute(f"UPDATE {keyword_name()}_identity SET analyzer = 'older'")
    assert not wiring.keyword_index().is_current()
    assert reindex.renew_keywords() is True
    work()
    assert wiring.keyword_index().is_current()
    assert Job.objects.filter(kind="reindex", state="succeeded").exists()
    assert reindex.renew_keywords() is False
