"""Files of other systems: told from their content, their words in ours."""

from __future__ import annotations

import json

import pytest

from engine.exchange.found import Found, LeftOut, Refused
from engine.exchange.read import Format
from engine.testing import exchange_files as files
from engine.testing.exchange_files import format_of, items, records, zipped


def test_each_turn_of_a_person_in_chatgpt_becomes_a_memory() -> None:
    text = json.dumps(files.chatgpt())
    assert format_of(text) == Format.CHATGPT
    first, second = records(text)
    assert first == {
        "content": "I like green tea",
        "key": "chatgpt:m-ask",
        "type": "episodic",
        "sessionId": "c-1",
        "metadata": {"source": "chatgpt", "speaker": "user", "title": "About tea"},
        "createdAt": "2025-05-04T12:00:00.250000+00:00",
        "occurredAt": "2025-05-04T12:00:00.250000+00:00",
    }
    assert second["content"] == "Here is my cup\nand a word"


def test_turns_of_the_assistant_come_when_they_are_asked_for() -> None:
    text = json.dumps(files.chatgpt())
    assert sum(isinstance(item, LeftOut) for item in items(text)) == 1
    found = records(text, assistant=True)
    assert [each["content"] for each in found][1] == "Noted."
    assert found[1]["metadata"]["speaker"] == "assistant"


def test_a_chat_without_its_last_turn_gives_all_of_them() -> None:
    chat = files.chatgpt()
    del chat[0]["current_node"]
    assert len(records(json.dumps(chat))) == 3


def test_a_chat_that_goes_round_in_circles_ends() -> None:
    chat = files.chatgpt()
    chat[0]["mapping"]["system"]["parent"] = "picture"
    assert len(records(json.dumps(chat))) == 2


def test_the_archive_of_chatgpt_gives_its_chats_and_its_memories() -> None:
    archive = zipped(
        {
            "chat.html": "<html>",
            "user.json": '{"id": "u", "email": "a@example.com"}',
            "message_feedback.json": '[{"content": "no memory"}]',
            "conversation_asset_file_names.json": '{"a": "b"}',
            "conversations.json": json.dumps(files.chatgpt()),
            "memories.json": '[{"id": "1", "content": "Likes tea", "created_at": "2025-05-04"}]',
        }
    )
    assert {each["content"] for each in records(archive)} == {
        "I like green tea",
        "Here is my cup\nand a word",
        "Likes tea",
    }


def test_each_turn_of_a_person_in_claude_becomes_a_memory() -> None:
    text = json.dumps(files.claude())
    assert format_of(text) == Format.CLAUDE
    first, second = records(text)
    assert (first["content"], first["sessionId"]) == ("I moved to Lisbon", "c-2")
    assert first["occurredAt"] == "2025-05-04T12:01:02.345678Z"
    assert first["metadata"] == {"source": "claude", "speaker": "user", "title": "Trip"}
    assert (second["content"], second["key"]) == ("Thanks", "claude:m-3")
    assert [each["content"] for each in records(text, assistant=True)][1] == "Welcome!"


def test_what_claude_remembers_comes_in_by_sections() -> None:
    archive = zipped(
        {
            "conversations.json": json.dumps(files.claude()),
            "memories.json": json.dumps(files.claude_memory()),
            "projects.json": '[{"uuid": "p-1", "name": "Maps"}]',
            "users.json": '[{"uuid": "u"}]',
        }
    )
    found = {each["key"]: each["content"] for each in records(archive)}
    assert found == {
        "claude:memory": "Lives in Lisbon.",
        "claude:memory:work": "Writes maps.\n\n- likes ink",
        "claude:memory:work:2": "Paints.",
        "claude:project:p-1": "Map of tea houses",
        "claude:m-1": "I moved to Lisbon",
        "claude:m-3": "Thanks",
    }


@pytest.mark.parametrize("layout", ["get_all", "list", "lines", "memories"])
def test_memories_of_mem0_keep_what_they_are_about(layout: str) -> None:
    results = files.mem0()["results"]
    text = {
        "get_all": json.dumps(files.mem0()),
        "list": json.dumps(results),
        "lines": json.dumps(results[0]) + "\n" + json.dumps(results[0]),
        "memories": json.dumps({"memories": results}),
    }[layout]
    assert format_of(text) == Format.MEM0
    assert records(text)[0] == {
        "content": "Likes tea",
        "key": "mem0:m-1",
        "sessionId": "r-1",
        "metadata": {
            "source": "mem0",
            "mem0": {"user_id": "ann", "categories": ["food"]},
            "a": 1,
        },
        "createdAt": "2025-05-04T05:00:00.123456-07:00",
        "occurredAt": None,
        "expiresAt": "2100-01-02",
    }


def test_relations_of_mem0_are_memories_too() -> None:
    text = json.dumps(
        {
            **files.mem0(),
            "relations": [
                {"source": "ann", "relationship": "likes", "target": "tea"},
                {"source": "ann"},
            ],
        }
    )
    assert [each["content"] for each in records(text)] == ["Likes tea", "ann likes tea"]


def test_a_backup_of_openmemory_is_read_once_with_its_states() -> None:
    assert format_of(files.openmemory()) == Format.OPENMEMORY
    found = items(files.openmemory())
    assert [type(item) for item in found] == [Found, Found, LeftOut]
    first, second = records(files.openmemory())
    assert first["metadata"] == {
        "source": "openmemory",
        "app": "editor",
        "categories": ["food"],
        "a": 1,
    }
    assert (first["archivedAt"], first["key"]) == (None, "openmemory:1")
    assert (second["archivedAt"], second["metadata"]["state"]) == (
        "2025-05-05T12:00:00+00:00",
        "paused",
    )


def test_a_backup_without_lines_takes_names_from_the_document() -> None:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(files.openmemory())) as archive:
        document = archive.read("memories.json")
    assert format_of(document) == Format.OPENMEMORY
    assert records(document)[0]["metadata"]["categories"] == ["food"]
    assert records(document)[0]["metadata"]["app"] == "editor"


@pytest.mark.parametrize("layout", ["lines", "document"])
def test_each_observation_and_relation_of_a_graph_is_a_memory(layout: str) -> None:
    text = files.graph()
    if layout == "document":
        lines = [json.loads(line) for line in text.splitlines()]
        entities = [line for line in lines if line["type"] == "entity"]
        relations = [line for line in lines if line["type"] == "relation"]
        text = json.dumps({"entities": entities, "relations": relations})
    assert format_of(text) == Format.MCP
    found = records(text)
    assert [each["content"] for each in found] == [
        "Ann (person): likes tea",
        "Ann (person): paints",
        "Lisbon (city)",
        "Ann lives in Lisbon",
    ]
    assert found[0]["metadata"] == {
        "source": "mcp-memory",
        "kind": "observation",
        "entity": "Ann",
        "entityType": "person",
    }
    assert len({each["key"] for each in found}) == 4


def test_a_format_can_be_insisted_on() -> None:
    text = '[{"text": "Likes tea", "id": 7}]'
    assert records(text)[0] == {"text": "Likes tea", "id": 7}
    assert records(text, wanted=Format.MEM0)[0]["key"] == "mem0:7"
    refused = items('[{"title": "no chat"}]', wanted=Format.CHATGPT)
    assert [type(item) for item in refused] == [Refused]


def test_names_with_underscores_are_ours_as_well() -> None:
    record = records('[{"content": "a", "created_at": "2025-05-04", "session_id": "s"}]')[0]
    assert (record["createdAt"], record["sessionId"]) == ("2025-05-04", "s")


@pytest.mark.parametrize("broken", ["1", '"text"', "null", "[1]", "{}", '{"mapping": 1}'])
def test_odd_values_where_records_should_be_crash_nothing(broken: str) -> None:
    for wanted in Format:
        if wanted not in (Format.CSV, Format.MARKDOWN):
            assert len(items(f"[{broken}]", wanted=wanted)) <= 1
