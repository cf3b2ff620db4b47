"""Immutable objects: local files, S3, and content-addressed blobs."""
