"""Several resources on servers (QKnober; docs/reference/vectors.md)."""

#: The knob of each rule that has one, by its name as a setting.
KNOBS = {"tetris": "f", "qknober": "rho"}
