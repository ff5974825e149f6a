"""Request and response shapes of the REST API, one module for each group of routes."""
