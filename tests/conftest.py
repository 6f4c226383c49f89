"""Settings for every test: Hypothesis draws the same examples in every run, so no result depends on luck or speed."""

from hypothesis import settings

settings.register_profile("same-every-time", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("same-every-time")
