"""The parts put together, started, reloaded, stopped."""
