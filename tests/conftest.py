"""Settings for all tests."""

from hypothesis import settings

# No deadline: a busy machine is not a finding.
settings.register_profile("formalm", deadline=None)
settings.load_profile("formalm")
