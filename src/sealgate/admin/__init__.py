"""Readers of what the pipeline reports: log, metrics, health, status."""
