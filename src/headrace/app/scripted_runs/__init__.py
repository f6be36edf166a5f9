"""Programs that run by a script of inputs and clock steps, any number of them side by side.

``hosted`` is a program with its script and its answers, ``script`` plans its micro-batches, ``running`` runs many of
them on one executor: the cases of ``headrace test --engine spark``, and the golden cases.
"""
