"""What estimators share: parameters, validation, the context of a fit, decision functions.

``estimator`` is the base of all, ``classifier`` of those that classify and ``projection`` of those
that project; ``parameters`` are declared with their checks, ``progress`` tells of each step, and
``span_map`` is the transformer by which linear methods become kernel methods.
"""
