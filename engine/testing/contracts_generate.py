"""What every ``TextGenerator`` keeps. Subclass, and give the fixtures ``generator`` (of a service
that works) and ``broken`` (of one that answers something else)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.errors import EngineError, GenerationFailed
from engine.protocols import TextGenerator

MESSAGES = [
    {"role": "system", "content": "Answer with one word."},
    {"role": "user", "content": '晴れ? ☀ "quoted"'},
]


class TextGeneratorContract:
    """The contract."""

    def test_it_names_its_model(self, generator: TextGenerator) -> None:
        assert generator.model

    def test_it_writes_text(self, generator: TextGenerator) -> None:
        assert isinstance(generator.generate(MESSAGES, max_tokens=20), str)

    def test_it_leaves_the_messages_as_they_are(self, generator: TextGenerator) -> None:
        messages = [dict(message) for message in MESSAGES]
        generator.generate(messages, max_tokens=20)
        assert messages == MESSAGES

    def test_threads_share_it(self, generator: TextGenerator) -> None:
        with ThreadPoolExecutor(4) as pool:
            answers = list(
                pool.map(lambda _n: generator.generate(MESSAGES, max_tokens=9), range(8))
            )
        assert len(answers) == 8

    def test_a_service_that_answers_something_else_is_an_engine_error(
        self, broken: TextGenerator
    ) -> None:
        with pytest.raises(EngineError) as caught:
            broken.generate(MESSAGES, max_tokens=20)
        assert isinstance(caught.value, GenerationFailed)

    def test_health_never_raises(self, generator: TextGenerator, broken: TextGenerator) -> None:
        assert generator.health().available
        assert isinstance(broken.health().reason, str)
