"""The ledger's answers in others' shapes: tables, the files of other tools, and a bundle that replays without a ledger.

Each module makes one shape from what `gathered` read. Nothing is derived anew here, and nothing is appended.
"""
