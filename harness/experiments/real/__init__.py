"""Running an experiment on a real YARN cluster."""
