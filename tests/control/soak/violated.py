"""What a history ends with when something that must hold does not."""


class Violated(Exception):
    """Something that must hold does not."""
