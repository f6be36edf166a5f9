"""Stores: what operators and processors read and write, and the builders that make them.

| module | |
|---|---|
| ``store`` | what all stores have in common |
| ``key_value``, ``timestamped``, ``versioned``, ``window``, ``session``, ``segmented`` | the kinds that users know |
| ``suppress_buffer``, ``time_ordered_buffer``, ``unmatched``, ``subscription`` | those that the DSL brings along |
| ``custom`` | stores of the user's own |
| ``read_only``, ``values_only``, ``tabular``, ``iterators``, ``times`` | how stores are read |
| ``factories``, ``suppliers``, ``builder``, ``internal_builders``, ``store_factory`` | how they are made |
| ``migration`` | another serde for a store |
"""
