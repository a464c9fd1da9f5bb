"""The control loop: its core without I/O (core, events), and the drivers virtual (simulator) and wall (a real RM)."""
