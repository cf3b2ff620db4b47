"""Commands that evaluate stored results; nothing is executed."""
