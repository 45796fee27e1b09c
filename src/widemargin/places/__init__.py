"""Rows that are not one array of this process: Dask collections, out of core or on a cluster.

``partitions`` takes a collection apart, ``loading`` makes checked rows of its partitions, and
``on_workers`` keeps shards of a span fit (``span.shard``) on the workers of a cluster. For cells,
``cell_shard`` says where rows belong, ``cell_buckets`` brings them together, and ``bucket`` fits
them. Dask is imported where it is used: who passes no collection needs none.
"""
