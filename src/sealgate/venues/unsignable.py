"""What is raised for a request that a venue's scheme cannot sign."""


class UnsignableError(ValueError):
    """A request that the venue's scheme cannot sign as it came; the message is for the bot."""
