"""Where facts are kept: SQL for what changes, Parquet segments and blobs for what does not.

Import the modules by name; this package imports none of them, so that reads stay light.
"""
