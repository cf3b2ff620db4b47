"""What a criterion says of measured programs: what is read, limited, ranked and kept; each verdict with its reason."""
