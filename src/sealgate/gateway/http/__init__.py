"""HTTP/1.1 at both ends, on one parser. Nothing in here knows of trading."""
