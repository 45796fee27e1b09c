"""What all benchmarks share. Benchmarks import from here, and never from one another.

A command (``benchmarks.NAME.command``) makes a plan of measurements (`runner.Measurement`) and
hands it to a session (`session`), which has each measured in a process of its own (`runner`,
`child`), keeps the records and writes the page (`sections`, `report`).
"""
