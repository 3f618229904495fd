"""The profile of the core's properties: no deadlines, as other programs may be running."""

from hypothesis import settings

settings.register_profile("core", deadline=None, max_examples=100)
settings.load_profile("core")
