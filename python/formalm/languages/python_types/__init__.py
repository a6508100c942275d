"""Python types as languages: their JSON Schemas, from Pydantic and made stricter where needed."""
