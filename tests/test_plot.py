"""Pictures: what is drawn where, and what is said when it cannot be drawn."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

from widemargin import plot

pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


def some_rows(n_classes=3, n_features=2):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 4)
    return rng.normal(size=(len(y), n_features)) + y[:, None], y


def looks(collection):
    """Colour and outline of the markers of a class."""
    outline = collection.get_paths()[0].vertices
    return tuple(collection.get_facecolor()[0]), outline.round(6).tobytes()


def test_each_class_is_drawn_where_its_rows_are(ax):
    X, y = some_rows(n_features=4)
    names = np.array(["ash", "birch", "cedar"])
    assert plot.projection(X, names[y], ax=ax, features=(3, 1)) is ax
    assert [c.get_label() for c in ax.collections] == ["ash", "birch", "cedar"]
    for k, collection in enumerate(ax.collections):
        np.testing.assert_array_equal(collection.get_offsets(), X[y == k][:, [3, 1]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ash", "birch", "cedar"]


def test_ten_classes_differ_in_colour_and_in_shape(ax):
    plot.projection(*some_rows(10), ax=ax)
    colours, shapes = zip(*map(looks, ax.collections), strict=True)
    assert len(set(colours)) == len(set(shapes)) == 10


def test_more_classes_still_differ_and_the_legend_grows_sideways(ax):
    plot.projection(*some_rows(34), ax=ax)
    assert len(set(map(looks, ax.collections))) == 34
    assert ax.get_legend()._ncols == 4
    ax.figure.canvas.draw()


def test_a_picture_can_do_without_a_legend_and_with_other_sizes(ax):
    plot.projection(*some_rows(), ax=ax, legend=False, size=5.0)
    assert ax.get_legend() is None
    np.testing.assert_array_equal(ax.collections[0].get_sizes(), 5.0)


def test_axes_are_named_by_the_argument_or_the_data_frame_or_by_counting(ax):
    pandas = pytest.importorskip("pandas")
    X, y = some_rows(n_features=3)
    frame = pandas.DataFrame(X, columns=["width", "height", 7])

    def labels():
        return ax.get_xlabel(), ax.get_ylabel()

    plot.projection(X, y, ax=ax)
    assert labels() == ("feature 1", "feature 2")
    plot.projection(frame, pandas.Series(y), ax=ax, features=(-1, 0))
    assert labels() == ("7", "width")
    np.testing.assert_array_equal(ax.collections[-1].get_offsets(), X[y == 2][:, [2, 0]])
    plot.projection(frame, y, ax=ax, names=["a", "b", "c"], features=(1, 2))
    assert labels() == ("b", "c")


def test_a_figure_is_made_where_none_is_given():
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context({"backend": "Agg"}):
        ax = plot.projection(*some_rows())
        assert ax.figure.number in pyplot.get_fignums()
        ax.figure.canvas.draw()
        pyplot.close(ax.figure)


def test_lists_are_taken(ax):
    plot.projection([[0, 1], [2, 3]], ["b", "a"], ax=ax)
    assert [c.get_label() for c in ax.collections] == ["a", "b"]


@pytest.mark.parametrize("X", [np.zeros((4, 1)), np.zeros(4)])
def test_a_single_feature_is_refused_with_the_remedy(X, ax):
    with pytest.raises(ValueError, match=r"1 feature, .* two: extract two .* Axes\.hist"):
        plot.projection(X, np.zeros(4), ax=ax)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, r"y has the shape \(3,\); give \(12,\)"),
        ({"y": np.zeros((12, 2))}, r"y has the shape \(12, 2\); give \(12,\)"),
        ({"names": ["only one"]}, "names has 1 entries and X 2 features; give a name for each"),
        ({"features": (0, 2)}, r"features=\(0, 2\) must be two columns of X, which has 2"),
        ({"features": (0, 1, 1)}, "must be two columns"),
        ({"X": np.full((12, 2), np.nan)}, "NaN"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_remedy(change, message, ax):
    X, y = some_rows()
    arguments = {"X": X, "y": y, "ax": ax} | change
    with pytest.raises(ValueError, match=message):
        plot.projection(**arguments)
    assert not ax.collections


def test_sparse_features_are_refused_with_the_remedy(ax):
    X, y = some_rows()
    with pytest.raises(TypeError, match="dense"):
        plot.projection(sparse.csr_array(X), y, ax=ax)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'widemargin\[plot\]'"):
        plot.projection(*some_rows())


def test_vectors_are_drawn_as_images_in_their_order(ax):
    values = np.arange(5 * 6.0).reshape(5, 6)
    assert plot.vectors(values, (2, 3), ax=ax, columns=2) is ax
    sheet = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert sheet.shape == (8, 7)
    for k, (top, left) in enumerate([(0, 0), (0, 4), (3, 0), (3, 4), (6, 0)]):
        image = sheet[top : top + 2, left : left + 3]
        np.testing.assert_array_equal(image, values[k].reshape(2, 3))
    # Between the images, and where there is none, nothing is drawn.
    assert (
        np.isnan(sheet[2]).all() and np.isnan(sheet[:, 3]).all() and np.isnan(sheet[6:, 4:]).all()
    )


def test_vectors_of_a_machine_are_found_and_a_wrong_shape_is_named(ax):
    class Machine:
        expansion_vectors_ = np.ones((4, 6))

    plot.vectors(Machine(), (3, 2), ax=ax)
    assert ax.images[0].get_array().shape == (7, 5)
    with pytest.raises(ValueError, match=r"shape=\(2, 2\) has 4 pixels.*6 features"):
        plot.vectors(Machine(), (2, 2), ax=ax)


class FourClasses:
    """A projection of four classes, of which "c" has no rows."""

    classes_ = np.array(["a", "b", "c", "d"])
    class_means_ = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [np.nan] * 3, [0.0, 3.0, 4.0]])

    def closest_pairs(self, n_pairs):
        pairs = {
            "first": np.array(["a", "a", "b"]),
            "second": np.array(["b", "d", "d"]),
            "distance": np.array([1.0, 25.0, 26.0]),
        }
        return {name: column[:n_pairs] for name, column in pairs.items()}


def test_class_means_are_drawn_and_the_closest_pairs_joined(ax):
    assert plot.classes(FourClasses(), ax=ax, n_pairs=2, features=(0, 2)) is ax
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), [[0, 0], [1, 0], [0, 4]])
    assert [text.get_text() for text in ax.texts] == ["a", "b", "d"]
    joined = [line.get_xydata().tolist() for line in ax.lines]
    assert joined == [[[0, 0], [1, 0]], [[0, 0], [0, 4]]]
    assert ax.lines[0].get_alpha() > ax.lines[1].get_alpha()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "feature 3")


def test_classes_without_names_and_what_cannot_be_drawn(ax):
    plot.classes(FourClasses(), ax=ax, names=False)
    assert not ax.texts and len(ax.lines) == 3
    flat = FourClasses()
    flat.class_means_ = flat.class_means_[:, :1]
    with pytest.raises(ValueError, match="1 feature, and a picture needs two"):
        plot.classes(flat, ax=ax)
    with pytest.raises(ValueError, match="ndarray has no class means"):
        plot.classes(np.ones(3), ax=ax)


def test_importances_are_bars_with_the_largest_on_top(ax):
    plot.importances([0.1, 0.7, 0.2], ax=ax, names=["a", "b", "c"], most=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "c"]
    assert [bar.get_width() for bar in ax.patches] == [0.7, 0.2]
    assert ax.yaxis_inverted()


def test_importances_of_a_metric_have_the_names_of_its_columns(ax):
    class Metric:
        feature_importances_ = np.array([0.4, 0.6])
        feature_names_in_ = np.array(["age", "height"])

    plot.importances(Metric(), ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["height", "age"]


@pytest.mark.parametrize(
    ("given", "names", "said"), [([[1.0]], None, "shape"), ([1.0], ["a", "b"], "names has 2")]
)
def test_importances_that_cannot_be_drawn_are_refused(ax, given, names, said):
    with pytest.raises(ValueError, match=said):
        plot.importances(given, ax=ax, names=names)
