"""Why a verdict is what it is: the decisive runs, what would flip it, and flips between two judgements."""
