"""Runs many small programs in one Spark query, each with inputs and a clock of its own.

A start of Spark costs seconds and a micro-batch tenths of one, so hundreds of programs share both.
``headrace.app.scripted`` has a program with its script and the plan of micro-batches; ``run`` puts them together and
``stores`` reads what is left.
"""
