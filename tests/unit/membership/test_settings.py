"""The settings of membership, in code and in the profiles."""

import pytest

from overlay.config import load_settings
from overlay.errors import ConfigError
from overlay.profiles import load_profile, profile_names
from protocols.membership import MembershipSettings


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_has_a_section_that_holds_together(profile: str) -> None:
    source = load_profile(profile)
    settings = load_settings({"membership": MembershipSettings}, source)["membership"]
    assert isinstance(settings, MembershipSettings)
    assert source.tables["membership"]
    # A helper must be able to report before the one who asked gives up.
    assert settings.indirect_timeout > settings.probe_timeout
    # Somebody who hangs for two seconds must have time to refute, however many accuse it.
    assert settings.suspicion_min > 2.0


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"suspicion_min": 20.0}, "at most suspicion_max"),
        ({"abrupt_min": 10.0}, "at most suspicion_min"),
        ({"probe_timeout": 1.0}, "no helper can report in time"),
        ({"sync_eager": 10.0}, "sync_eager"),
        ({"probe_period": 0.0}, "probe_period"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(values: dict[str, float], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        MembershipSettings(**values)  # type: ignore[arg-type]
