"""schemathesis over ``docs/openapi.json`` against a running studio with data in it."""
