"""How facts travel: frames, their bytes and their digests."""
