"""How columns are told shortly, in frames and in segments, and the canonical bytes that digests cover."""
