"""Benchmarks of widemargin: ``python -m benchmarks`` lists them, with a name it runs one.

Data come from the folder ``$WIDEMARGIN_DATA`` or from OpenML (`benchmarks.datasets`); every
measurement runs alone in a fresh process (`benchmarks.runner`, `benchmarks.child`); results land
in ``benchmarks/results`` as JSON and as a Markdown table.
"""
