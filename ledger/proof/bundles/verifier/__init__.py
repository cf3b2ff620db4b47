"""The verifier that travels in every bundle: Python, pyarrow and numpy, and nothing else of lapledger.

It recomputes frame digests, chains, cut, head, blobs and parts; `reward` adds the evidence of one reward. A bundle
holds these modules as `lapbundle.verifier`. Nothing in a bundle is believed. The code in a bundle may be altered with
it: `lap export check` runs the code of an installed release.
"""
