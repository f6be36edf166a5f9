"""The pipeline that ``headrace demo`` runs; a module of its own, so that Spark's workers load nothing else for it.

``retail_purchases`` is the pipeline, ``tills`` its input, ``results`` its output.
"""
