"""Tests of the gateway, in this process, against a double of a model server."""
