"""The control loop: its pure core (core, events) and its drivers."""
