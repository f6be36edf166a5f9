"""The topic log: where records are read and written, and how keys are spread over partitions."""
