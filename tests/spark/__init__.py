"""The Spark jobs: against known answers, against DuckDB, on a cluster, and in a browser."""
