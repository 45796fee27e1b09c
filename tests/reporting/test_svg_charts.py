"""Charts show the numbers that they are given."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib.image
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin.reporting.pictures import picture, png
from widemargin.reporting.svg_charts import (
    Series,
    bar_chart,
    histogram,
    line_chart,
    point_chart,
    shade_table,
    ticks,
)

FINITE = st.floats(-1e12, 1e12)


@given(FINITE, st.floats(1e-6, 1e12))
def test_ticks_are_few_round_and_inside(low, width):
    high = low + width
    found = ticks(low, high)
    assert len(found) <= 12
    assert found == sorted(found)
    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= each <= high + slack for each in found)


@given(st.lists(FINITE, max_size=40), st.lists(FINITE, max_size=40))
def test_bars_of_a_histogram_hold_every_value(some, others):
    text = histogram(
        "t", "said", {"a": np.array(some), "b": np.array(others)}, label="x", marks={"m": 0.0}
    )
    counts = re.findall(r"<title>(\w), .*?: ([\d,]+)</title>", text)
    for name, values in (("a", some), ("b", others)):
        assert sum(int(n.replace(",", "")) for g, n in counts if g == name) == len(values)


def test_no_bar_lies_on_both_sides_of_a_mark():
    values = np.random.default_rng(0).normal(loc=0.3, size=300)
    groups = {"left": values[values < 0], "right": values[values > 0]}
    text = histogram("t", "s", groups, label="x", marks={"border": 0.0})
    places = re.findall(r'<rect x="([\d.]+)".*?<title>(\w+),', text)
    left = {x for x, name in places if name == "left"}
    assert left
    assert not left & {x for x, name in places if name == "right"}


def _chart(text):
    return ET.fromstring(text[: text.index("</svg>") + 6])


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_lines_and_points_stay_inside_the_drawing(values):
    y = np.array(values)
    x = np.arange(1.0, len(y) + 1)
    for text in (
        line_chart("t", "s", [Series("a", x, y), Series("b", x, -y)], labels=("x", "y")),
        line_chart("t", "s", [Series("a", x, y)], labels=("x", "y"), logarithmic=True),
        point_chart("t", "s", x, y, labels=("x", "y"), diagonal=True),
        point_chart("t", "s", x, y, labels=("x", "y"), zero=True),
    ):
        root = _chart(text)
        for dot in root.iter("circle"):
            assert -1 <= float(dot.get("cx")) <= 461
            assert -1 <= float(dot.get("cy")) <= 271


def test_bars_are_as_long_as_their_values():
    text = bar_chart("t", "s", ["a", "b", "c"], np.array([4.0, 2.0, 0.0]), label="x")
    widths = [float(each.get("width")) for each in _chart(text).iter("rect")]
    assert widths[0] == 2 * widths[1]
    assert widths[2] == 1  # to be seen at all


def test_the_shades_of_a_table_name_their_counts():
    counts = np.array([[5, 1], [0, 7]])
    root = _chart(shade_table("t", "s", ["x<y", "z"], counts, labels=("a", "b")))
    said = [each.text for each in root.iter("title")]
    assert "x<y called z: 1" in said
    assert sum(each.get("class") == "cell" for each in root.iter("rect")) == 4


def test_a_picture_is_a_file_that_others_can_read():
    grey = np.random.default_rng(0).integers(0, 256, (7, 5), dtype=np.uint8)
    found = matplotlib.image.imread(io.BytesIO(png(grey)), format="png")
    assert_array_equal(np.rint(255 * found[..., 0] if found.ndim == 3 else 255 * found), grey)
    color = np.random.default_rng(0).integers(0, 256, (4, 3, 3), dtype=np.uint8)
    found = matplotlib.image.imread(io.BytesIO(png(color)), format="png")
    assert_array_equal(np.rint(255 * found[..., :3]), color)


def test_a_constant_picture_is_no_error():
    assert 'alt="a &lt;b&gt;"' in picture(np.zeros(4), (2, 2), "a <b>")
