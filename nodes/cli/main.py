"""The command `overlay`. Exit codes: 0 done, 1 failed, 2 wrong usage."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodes.peer_options import parse
from overlay.errors import OverlayError

if TYPE_CHECKING:
    import typer


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    if words and words[0] == "peer":
        options = parse(words[1:])
        if options is not None:  # a peer starts without typer: it lives long, and starts often
            from nodes.peer_process import run as run_peer

            return run_peer(options)
    try:
        build_app()(args=list(words), prog_name="overlay")
    except OverlayError as error:
        print(f"overlay: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; leave nothing for Python to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


def build_app() -> "typer.Typer":
    """Put all commands together."""
    from nodes.cli.app import app

    return app
