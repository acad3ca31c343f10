"""The one exception of the build."""


class BuildError(Exception):
    """A build that cannot go on; the text is one sentence that says what to do about it."""
