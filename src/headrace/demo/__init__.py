"""The pipeline that ``headrace demo`` runs; a module of its own, so that Spark's workers load nothing else for it."""
