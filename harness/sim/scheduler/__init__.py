"""The Fair Scheduler of Hadoop 3.4.2, decision for decision, apart from the clock that drives it."""
