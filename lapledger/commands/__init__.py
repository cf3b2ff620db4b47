"""One module a command: parse, call one workflow, render."""
