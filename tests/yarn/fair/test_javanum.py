"""Numbers as Java reads them."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.yarn.fair.javanum import (
    float32,
    hash_set_order,
    parse_double,
    parse_float,
    parse_int,
    parse_long,
    percent_text,
    split,
    string_hash,
    weight_text,
    wrap_long,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" 1.5\n", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3f", 1000.0),
        ("2D", 2.0),
        ("+3", 3.0),
        ("0x1.8p1", 3.0),
        ("-Infinity", -math.inf),
        ("1e400", math.inf),
        ("1e-400", 0.0),
        ("0x1p99999999999999999999", math.inf),
        ("0x0p99999", 0.0),
        ("-0x.8p-1", -0.25),
    ],
)
def test_doubles(text: str, value: float) -> None:
    assert parse_double(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", "1_0", "inf", "nan", "1,5", "0x10", "0x.p1", "--1", "1e", "1fd", "+-1", "٣", "1 2", "."]
)
def test_what_is_no_double(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_double(text)


def test_a_float_is_rounded_once() -> None:
    # As a double each of the first two is exactly halfway between two floats.
    assert parse_float("0.500000029802322387695312500000000000001") == 0.5 + 2**-24
    assert parse_float("0.500000029802322387695312499999999999999") == 0.5
    assert parse_float("0.5000000298023223876953125") == 0.5
    assert parse_float("-0.500000029802322387695312500000000000001") == -0.5 - 2**-24
    assert math.isnan(parse_float("NaN"))
    assert parse_float("1e39") == math.inf


def test_integers() -> None:
    assert (parse_int("+7"), parse_int("-0"), parse_int("٣"), parse_long(str(2**63 - 1))) == (7, 0, 3, 2**63 - 1)
    for text in ("", "1.0", " 1", "2147483648", "-2147483649", "1_0", "9" * 5000):
        with pytest.raises(ValueError, match=r"is (not an integer|beyond)"):
            parse_int(text)
    assert parse_int("0" * 5000 + "12") == 12
    assert wrap_long((2**63 - 1) * 1000) == -1000


def test_split_drops_empty_parts_behind() -> None:
    assert split("a,b,,", ",") == ["a", "b"]
    assert split(",a", ",") == ["", "a"]
    assert split(",", ",") == []
    assert split("", ",") == [""]


def test_string_hash() -> None:
    # Values that String.hashCode documents or that are well known.
    assert string_hash("") == 0
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("hello") == 99162322
    assert string_hash("polygenelubricants") == -(2**31)


def test_hash_set_order_is_by_bucket() -> None:
    # Single letters hash to their code: 'a' is 97, bucket 1 of 16.
    assert hash_set_order(["c", "b", "a", "b", "p"]) == ["p", "a", "b", "c"]
    # Aa and BB collide: order of insertion.
    assert hash_set_order(["BB", "Aa"]) == ["BB", "Aa"]


@settings(deadline=None, max_examples=300)
@given(st.floats(1e-3, 1e6))
def test_a_weight_survives_its_text(weight: float) -> None:
    single = float32(weight)
    assert float32(parse_double(weight_text(single))) == single
    assert single == struct.unpack("f", struct.pack("f", weight))[0]


@settings(deadline=None, max_examples=300)
@given(st.floats(0, 1e4))
def test_a_percentage_survives_its_text(percent: float) -> None:
    fraction = percent / 100.0
    text = percent_text(fraction)
    assert "e" not in text
    assert float(text) / 100.0 == fraction
