"""The command line's frame: the entry point, and options that several commands share."""
