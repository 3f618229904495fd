"""One request, from its head to its record."""
