"""Programs that run by a script of inputs and clock steps, many of them in one Spark query.

``hosted`` is a program with its script and its answers, ``feed`` plans the micro-batches. A start of Spark costs
seconds and a micro-batch tenths of one, so programs share both: the cases of ``headrace test --engine spark``, and the
golden cases.
"""
