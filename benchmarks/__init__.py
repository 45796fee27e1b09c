"""Benchmarks of widemargin: ``python -m benchmarks`` lists them, with a name it runs one.

A folder for each, and `benchmarks.harness` for what they share. Data come from the folder
``$WIDEMARGIN_DATA`` or from OpenML; every measurement runs alone in a fresh process; results land
in ``benchmarks/results`` as JSON and as a Markdown page.
"""
