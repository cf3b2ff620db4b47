"""Pictures as bytes of the series that `studies` makes. No file is written and no global plotting state is touched.

matplotlib is imported only when a picture is drawn. The same input gives the same bytes on the same machine.
"""
