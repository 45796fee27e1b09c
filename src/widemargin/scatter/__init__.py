"""What projections know of the rows: moments, whitened spaces, neighbours, eigenproblems.

``class_scatter`` holds counts, means and within-class scatter, with ``fourth_powers`` for the
shrinkage of Ledoit and Wolf, and ``stream`` a sample of the rows beside them. ``whitening`` is the
space in which the within-class covariance is the identity. ``neighbours``, ``local_scatter`` and
``neighbour_graph`` are what local methods know of near rows, and ``eigenproblem`` solves theirs.
"""
