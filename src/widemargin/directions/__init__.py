"""Max-margin directions: the finders of MaxMarginDA.

``direction_engine`` chooses the finder, and ``rounds`` takes one direction after the other.
``deflation`` and ``direct`` find one on the matrix of all kernel values (``on_rows``),
``core_sets`` by a core set, ``in_span`` in the span of a few vectors, ``linear`` and
``linear_hinge`` in the input space. ``output_codes`` says which side each class is on in each
problem.
"""
