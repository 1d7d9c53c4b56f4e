"""Progress of a lab's commands: on a terminal, in a pipe, and for programs."""

import pytest

from nodes.lab.progress import Lines, Quiet, Screen, progress


def test_a_terminal_sees_each_step_with_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with progress(json=False) as tell:
        assert isinstance(tell, Screen)
        tell.step("connecting to 2 hosts")
        tell.host("h1", "connecting")
        tell.step("installing")
        tell.note("[not markup] a note")
    said = capsys.readouterr().err
    assert "connecting to 2 hosts" in said
    assert "installing" in said
    assert "[not markup] a note" in said


def test_a_pipe_gets_one_line_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(json=False) as tell:
        assert isinstance(tell, Lines)
        tell.step("installing")
        tell.host("h1", "sending 20 wheels")
    assert capsys.readouterr().err == "[  0.0 s] installing\n"


def test_programs_get_nothing_but_notes(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(json=True) as tell:
        assert isinstance(tell, Quiet)
        tell.step("installing")
        tell.note("interrupted")
    assert capsys.readouterr().err == "overlay: interrupted\n"
