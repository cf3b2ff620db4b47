"""The same verdicts elsewhere: ranks counted by torch on a device, problems judged by processes of a Ray cluster."""
