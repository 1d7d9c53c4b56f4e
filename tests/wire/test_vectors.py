"""The vectors say what we encode, what others decode, and what strangers compute from names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest

from nodes.wire_reference import page
from overlay.ids import key_of, vid_of
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.frames import VERSION
from overlay.wire.reader import BatchReader
from protocols.membership.records import fingerprint
from protocols.membership.table import MemberTable, bucket_of
from protocols.topics.names import word_of
from tests.wire import examples, stranger

HERE = Path(__file__).parent
SENT_AT = 1_700_000_000.0
SETS = {
    "framework": examples.FRAMEWORK,
    "membership": examples.MEMBERSHIP,
    "topology": examples.TOPOLOGY,
    "topics": examples.TOPICS,
}


def readable(value: Any) -> Any:
    """As JSON can say it; bytes are {"hex": …}."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (list, tuple)):
        return [readable(item) for item in value]
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    return value


def message_vector(message: Message) -> dict[str, Any]:
    encoded = msgspec.msgpack.encode(message)
    return {
        "name": type(message).__name__,
        "array": readable(msgpack.unpackb(encoded)),
        "hex": encoded.hex(),
    }


def frame_vector(about: str, sections: Any) -> dict[str, Any]:
    encoded = msgspec.msgpack.encode((VERSION, SENT_AT, sections, ()))
    return {"about": about, "head": readable(msgpack.unpackb(encoded)), "hex": encoded.hex()}


def place_vectors() -> list[dict[str, Any]]:
    names = ("ada", "bob", "zürich-7", "sensors/7/temperature")
    return [
        {
            "text": name,
            "key": f"{key_of(name):032x}",
            "bucket": bucket_of(name),
            "word": word_of(name),
            "fingerprint": fingerprint(name, examples.BORN, 12345),
        }
        for name in names
    ]


def view_vector() -> dict[str, Any]:
    """The digest of a view with two members and two attributes."""
    table = MemberTable("lab", "ada")
    for record in (examples.ADA, examples.BOB):
        table.put(record, 0.0)
    for attribute in (examples.GPU, examples.GONE):
        table.put_attribute(attribute)
    return {
        "records": readable(msgspec.to_builtins([examples.ADA, examples.BOB])),
        "attributes": readable(msgspec.to_builtins([examples.GPU, examples.GONE])),
        "digest": table.digest,
        "buckets": table.packed_buckets().hex(),
    }


def made() -> dict[str, Any]:
    """All files of vectors, as the code has them now."""
    files: dict[str, Any] = {
        name: [message_vector(message) for message in messages] for name, messages in SETS.items()
    }
    files["frames"] = [frame_vector(*frame) for frame in examples.FRAMES]
    files["places"] = place_vectors()
    files["view"] = view_vector()
    return files


@pytest.mark.golden
@pytest.mark.parametrize("name", sorted(made()))
def test_what_we_encode_is_what_the_vectors_say(name: str, request: pytest.FixtureRequest) -> None:
    path = HERE / f"{name}.json"
    text = json.dumps(made()[name], indent=1, ensure_ascii=False) + "\n"
    if request.config.getoption("--rewrite"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "published bytes must not change"


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_vectors_decode_to_what_they_are_made_of(name: str) -> None:
    kinds = dict.fromkeys(type(message) for message in SETS[name])
    reader = BatchReader(kinds, Limits())
    vectors = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    for message, vector in zip(SETS[name], vectors, strict=True):
        assert reader.message(msgspec.Raw(bytes.fromhex(vector["hex"]))) == message


def test_a_newer_peer_may_add_fields_at_the_end() -> None:
    reader = BatchReader([type(message) for message in examples.TOPICS], Limits())
    for message in examples.TOPICS:
        longer = [*msgpack.unpackb(msgspec.msgpack.encode(message)), "new", 1]
        assert reader.message(msgspec.Raw(msgpack.packb(longer))) == message


def test_a_stranger_computes_the_same_places() -> None:
    for vector in json.loads((HERE / "places.json").read_text(encoding="utf-8")):
        text = vector["text"]
        assert stranger.key_of(text) == int(vector["key"], 16) == vid_of(text)
        assert stranger.key_of(text) % stranger.BUCKETS == vector["bucket"]
        assert stranger.word_of(text) == vector["word"]
        assert stranger.fingerprint(text, examples.BORN, 12345) == vector["fingerprint"]


def test_the_reference_of_messages_is_up_to_date() -> None:
    told = (HERE.parents[1] / "docs" / "MESSAGES.md").read_text(encoding="utf-8")
    assert told == page(), "run: python -m nodes.wire_reference > docs/MESSAGES.md"


def test_the_page_names_the_tags_that_it_explains() -> None:
    told = (HERE.parents[1] / "docs" / "wire.md").read_text(encoding="utf-8")
    for messages in SETS.values():
        for message in messages:
            name = type(message).__name__
            if name not in ("LinkRefused", "LinkDropped"):
                assert f"`{name}`" in told or f"({name}" in told, f"docs/wire.md lacks {name}"


def test_the_stranger_is_one() -> None:
    lines = (HERE / "stranger.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 400
    imported = [line for line in lines if line.startswith(("import ", "from "))]
    ours = ("overlay", "protocols", "nodes", "tests", "bench", "msgspec")
    assert not [line for line in imported if line.split()[1].partition(".")[0] in ours]
