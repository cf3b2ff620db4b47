"""The calling conventions of others' trainers, each as a thin shape around one function that scores completions.

No trainer is imported, and nothing is run or read here.
"""
