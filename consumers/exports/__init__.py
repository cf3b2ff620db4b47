"""The ledger's answers in other tools' formats: tables, files, and a bundle that replays without a ledger.

Each module makes one shape from what `gathered` read. Nothing is derived anew here, and nothing is appended.
"""
