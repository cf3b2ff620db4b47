"""Result files of other tools, read into the facts of campaigns: one module a format, and what the formats share."""
