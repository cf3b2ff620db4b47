"""The terminal screens, in Textual."""
