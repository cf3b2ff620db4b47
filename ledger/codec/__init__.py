"""Compact column encodings for frames and segments, and the canonical bytes that digests cover."""
