"""The control loop: its pure core (core, events) and its drivers: virtual (simulator), wall (a real RM)."""
