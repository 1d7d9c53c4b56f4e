"""The command `overlay`. Exit codes: 0 done, 1 failed, 2 wrong usage.

Everything is imported while a command runs: so a Ctrl-C during imports ends in one line too.
"""

import os
import signal
import sys
from collections.abc import Sequence

TYPER_INTERRUPTED = 130  # how typer ends after a Ctrl-C; our codes are 0, 1 and 2


def main() -> None:
    """The entry point of the installed command."""
    try:
        _open_what_is_closed()
        from overlay.logs import configure

        configure()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("overlay: interrupted", file=sys.stderr)
        code = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done; only the exit is left
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    from overlay.errors import OverlayError

    try:
        code = _run_peer(words[1:]) if words[:1] == ["peer"] else None
        if code is None:
            code = _run_command(words)
        sys.stdout.flush()  # here, where a reader that went away can be told from a failure
    except OverlayError as error:
        return _failed(str(error))
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; leave nothing for Python to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _failed(f"{place}{error.strerror or error}")
    return code


def _open_what_is_closed() -> None:
    """Started with `>&-`: fill descriptors 0 to 2, or a socket would get what is printed."""
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - it lives as long as we do
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _run_peer(words: Sequence[str]) -> int | None:
    """Run a peer without typer, since it lives long and starts often; None when typer must talk."""
    from nodes.peer_options import parse

    options = parse(words)
    if options is None:
        return None
    from nodes.peer_process import run as run_peer

    return run_peer(options)


def _run_command(words: Sequence[str]) -> int:
    from nodes.cli.app import app

    try:
        app(args=list(words), prog_name="overlay")
    except SystemExit as done:
        if done.code == TYPER_INTERRUPTED:
            raise KeyboardInterrupt from None
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


def _failed(problem: str) -> int:
    print(f"overlay: {' '.join(problem.split())}", file=sys.stderr)
    return 1
