"""The parts of ``conformance/qtt.py``: cases, their records, the runs and the judgements."""
