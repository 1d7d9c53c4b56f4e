"""What people read of members: one line for an event, and only what is meant for them."""

from nodes.cli.members import for_people, shown
from nodes.facts import sentence


def test_a_value_of_several_lines_stays_in_one() -> None:
    told = {"event": "attributes-changed", "member": "ada", "keys": ["x"], "values": {"x": "a\nb"}}
    assert sentence(told) == "ada: x = a b"


def test_people_are_spared_what_zones_tell_each_other() -> None:
    told = {"gpu": 4, "management": "bob tcp://127.0.0.1:1"}
    assert shown(for_people(told)) == "gpu=4"
