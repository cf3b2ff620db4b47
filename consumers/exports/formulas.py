"""Texts that a spreadsheet would take for formulas. A name or a program is data, whoever opens the file."""

STARTS = ("=", "+", "-", "@", "\t", "\r")


def escaped(text: str) -> str:
    """The text, after an apostrophe where it begins like a formula: spreadsheets show it and never run it."""
    return f"'{text}" if text.startswith(STARTS) else text
