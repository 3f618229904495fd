"""The exchange's time, kept by samples of it."""
