"""What a shell may offer after a word was begun."""

from overlay.errors import OverlayError


def running_nodes(incomplete: str) -> list[str]:
    """The nodes that run on this machine."""
    from nodes.control import name_of, sockets
    from nodes.folders import runtime_folder

    try:
        names = {name_of(path) for path in sockets(runtime_folder())}
    except OverlayError:
        return []  # completion never complains
    return sorted(name for name in names if name.startswith(incomplete))


def profiles(incomplete: str) -> list[str]:
    """The ready-made settings."""
    from overlay.profiles import profile_names

    return [name for name in profile_names() if name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """What the simulator can play."""
    from nodes.scenarios.registry import all_scenarios

    return [entry.name for entry in all_scenarios() if entry.name.startswith(incomplete)]
