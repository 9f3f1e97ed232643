"""What ``bench.rebuild`` is made of: the state that is exported, and a reader beside it."""
