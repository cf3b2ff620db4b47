"""Commands that bring problems and results in, and take results out."""
