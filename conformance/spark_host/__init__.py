"""Runs many small programs side by side, on Spark or in this process.

A start of Spark costs seconds and a job hundredths of one, so hundreds of programs share both.
``headrace.app.scripted_runs`` has a program with its script; ``run`` chooses who runs them, ``stores`` reads what is
left.
"""
