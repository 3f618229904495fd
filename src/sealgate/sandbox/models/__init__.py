"""What travels in bodies and queries: pydantic models validate requests and make the OpenAPI document."""
