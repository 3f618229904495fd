"""Where requests wait for their turn."""
