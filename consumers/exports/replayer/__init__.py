"""The replayer that travels in a campaign's bundle: Python, pyarrow and numpy, and nothing of lapledger.

It judges by definition, one program at a time, and shares no code with the scoring engine: two implementations that
agree say more than one. A bundle holds these modules as the package `lapbundle.replayer`, beside the
verifier that every bundle has.
"""
