"""What a mistyped key of a user's file is told to be."""

from __future__ import annotations

from pydantic import BaseModel

from harness.base.documents import keys_at


class Limit(BaseModel):
    most: int = 0


class Queue(BaseModel):
    weight: int = 1
    limit: Limit | None = None
    children: dict[str, Queue] | None = None


class File(BaseModel):
    queues: dict[str, Queue]


def test_a_name_that_is_called_like_a_key_hides_no_keys() -> None:
    """A queue may be called limit: below it stand a queue's keys, not a limit's."""
    of_queue = ["weight", "limit", "children"]
    assert keys_at(File, ("queues", "limit", "wieght")) == of_queue
    assert keys_at(File, ("queues", "a", "children", "limit", "wieght")) == of_queue
    assert keys_at(File, ("queues", "limit", "limit", "mots")) == ["most"]
    assert keys_at(File, ("queue",)) == ["queues"]
