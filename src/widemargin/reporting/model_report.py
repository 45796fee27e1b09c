"""`report`: a page about a model, in one HTML file that needs nothing else."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from widemargin.reporting.certificate_words import certificate_words
from widemargin.reporting.class_sections import class_sections
from widemargin.reporting.evidence import Evidence, gather
from widemargin.reporting.growth_curve import growth_curve
from widemargin.reporting.html_parts import (
    Section,
    figure,
    number,
    page,
    paragraph,
    table,
    tiles,
    words_of,
)
from widemargin.reporting.importance import importances
from widemargin.reporting.number_sections import number_sections
from widemargin.reporting.outlier_sections import outlier_sections
from widemargin.reporting.pictures import picture
from widemargin.reporting.svg_charts import Series, bar_chart, line_chart

__all__ = ["report"]

# Columns and vectors that are shown.
_MOST_COLUMNS = 15
_MOST_VECTORS = 24
_OF = {"classes": class_sections, "numbers": number_sections, "outliers": outlier_sections}


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    feature_names: Any = None,
    image_shape: tuple[int, ...] | None = None,
    learning_curve: bool = False,
    max_time: float = 20.0,
    random_state: int = 0,
) -> str:
    """Return a page about a model: one HTML file, with nothing to load.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or outlier detector of this library, or a pipeline that ends
        in one.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Rows to report on, as the model reads them; best those that it was not fitted to. Of more
        than 20,000 rows a random sample is looked at.
    y : array-like of shape (n_samples,), default=None
        What is true of them; outlier detectors need none.
    path : str or path, default=None
        Where to write the page.
    title : str, default=None
        Its heading.
    feature_names : sequence of str, default=None
        Names of the columns; None takes those of a data frame.
    image_shape : tuple of int, default=None
        The shape of a row that is a picture: (height, width) or (height, width, 3).
    learning_curve : bool, default=False
        Whether to fit copies of the machine to parts of the rows.
    max_time : float, default=20.0
        Seconds at the most for feature importances, and again for the learning curve.
    random_state : int, default=0
        Seed of samples and shuffles.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import widemargin
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = widemargin.MarginClassifier().fit(X[::2], y[::2])
    >>> page = widemargin.report(model, X[1::2], y[1::2])
    >>> "Confusions" in page
    True
    """
    found = gather(model, X, y, names=feature_names, picture=image_shape, random_state=random_state)
    if image_shape is not None and int(np.prod(image_shape)) != found.X.shape[1]:
        raise ValueError(
            f"image_shape={tuple(image_shape)} has {int(np.prod(image_shape))} values, but rows "
            f"have {found.X.shape[1]}."
        )
    if feature_names is not None and len(found.names) != found.X.shape[1]:
        raise ValueError(
            f"feature_names has {len(found.names)} names, but rows have {found.X.shape[1]} columns."
        )
    about = getattr(model, "about_", {})
    about = about if isinstance(about, dict) else {}
    sections = [
        Section("overview", "Overview", _overview(found, about)),
        Section("certificate", "How sure we are", _certificate(found), half=True),
        *_OF[found.task](found),
    ]
    sections += _importance_section(found, max_time, random_state)
    if learning_curve:
        sections += _curve_section(found, max_time, random_state)
    sections += _vector_section(found)
    sections.append(Section("costs", "Times and memory", _costs(found, about), half=True))
    name = type(found.machine).__name__
    heading = title or f"{name}: a report"
    text = page(heading, _subtitle(found, about), sections)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _subtitle(found: Evidence, about: dict[str, Any]) -> str:
    target = f" of {about['target']}" if about.get("target") else ""
    return (
        f"{type(found.machine).__name__} for {found.task}{target}, on {found.n_given:,} rows with "
        f"{found.X.shape[1]:,} columns."
    )


def _overview(found: Evidence, about: dict[str, Any]) -> str:
    """Return what was fitted, in boxes and sentences."""
    facts = [*_scores(found), ("rows of this report", number(found.n_given))]
    if found.task == "classes":
        facts.append(("classes", number(len(found.model.classes_))))
    vectors = _vectors(found)
    if vectors is not None:
        facts.append(("vectors of the machine", number(int(vectors.shape[0]))))
    certificate = getattr(found.machine, "certificate_", None)
    if certificate is not None:
        facts.append(("from the best, at most (proved)", f"{100 * certificate.gap:.2g} %"))
    parts = [tiles(facts)]
    if found.n < found.n_given:
        parts.append(
            paragraph(
                f"{found.n:,} of the {found.n_given:,} rows are looked at: a random sample, and of "
                "classes that the model knows."
            )
        )
    if about.get("rows"):
        parts.append(
            paragraph(
                f"Fitted to {about['rows']:,} rows of {about.get('source', 'a file')}. If these "
                "are the rows of this report, its figures flatter the model."
            )
        )
    parts.append(_parameters(found))
    if about.get("kind") == "table":
        parts.append(_columns(about))
    return "".join(parts)


def _scores(found: Evidence) -> list[tuple[str, str]]:
    """Return the figures that a reader looks for first."""
    if found.task == "outliers":
        return [("called outliers", f"{100 * float((found.predicted == -1).mean()):.1f} %")]
    assert found.y is not None
    if found.task == "classes":
        recalls = [
            float((found.predicted[found.y == each] == each).mean()) for each in np.unique(found.y)
        ]
        right = float((found.predicted == found.y).mean())
        return [
            ("accuracy", f"{100 * right:.2f} %"),
            ("balanced accuracy", f"{100 * float(np.mean(recalls)):.2f} %"),
        ]
    y = found.y.astype(np.float64)
    residual = y - found.predicted
    spread = float(((y - y.mean()) ** 2).sum())
    first = [("R²", f"{1 - float((residual**2).sum()) / spread:.4f}")] if spread else []
    return [
        *first,
        ("mean absolute error", number(float(np.abs(residual).mean()))),
        ("root mean squared error", number(float(np.sqrt((residual**2).mean())))),
    ]


def _parameters(found: Evidence) -> str:
    """Return the parameters of the machine, those that are not defaults first."""
    values = found.machine.get_params(deep=False)
    defaults = type(found.machine)().get_params(deep=False)
    rows = []
    for name, value in values.items():
        changed = repr(value) != repr(defaults.get(name))
        rows.append((not changed, [name, words_of(value, 80), "set" if changed else "default"]))
    rows.sort(key=lambda row: row[0])
    shown = table(["parameter", "value", ""], [row for _, row in rows])
    return _folded(f"Parameters of {type(found.machine).__name__}", shown)


def _columns(about: dict[str, Any]) -> str:
    rows = [[name, "number: median where missing"] for name in about["numbers"]]
    rows += [[name, "categories: a column of zeros and ones each"] for name in about["categories"]]
    rows += [[name, f"left out: {why}"] for name, why in about.get("left_out", {}).items()]
    shown = table(["column", "what is done with it"], rows[:200])
    return _folded("Columns of the table", shown)


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _certificate(found: Evidence) -> str:
    certificate = getattr(found.machine, "certificate_", None)
    if certificate is None:
        return paragraph(
            f"{type(found.machine).__name__} has no certificate: it approximates a machine, or "
            "solves a problem without a bound."
        )
    words = "".join(paragraph(each) for each in certificate_words(certificate))
    rows = [
        ["objective reached (primal)", f"{certificate.primal:.8g}"],
        ["lower bound (dual)", f"{certificate.dual:.8g}"],
        ["relative gap", f"{certificate.gap:.2e}"],
        ["scope", certificate.scope],
    ]
    if certificate.full_dual is not None:
        rows.append(["lower bound of the full problem", f"{certificate.full_dual:.8g}"])
    note = paragraph(
        "This is about the optimisation. How well the model predicts is what the rows below say."
    )
    return words + note + table(["", "value"], rows)


def _importance_section(found: Evidence, seconds: float, random_state: int) -> list[Section]:
    """Return the section on what shuffled columns cost, if any could be tried."""
    tried, losses = importances(found, seconds, random_state)
    if not len(tried):
        return []
    order = np.argsort(-losses, kind="stable")
    measure = {
        "classes": "accuracy lost",
        "numbers": "R² lost",
        "outliers": "mean change of the score, in its standard deviations",
    }[found.task]
    best = order[:_MOST_COLUMNS]
    names = [found.names[tried[place]] for place in best]
    said = f"The answers depend most on {words_of(names[0])}: {measure}, {losses[best[0]]:.3g}."
    chart = bar_chart("Columns that matter", said, names, losses[best], label=measure)
    numbers = table(
        ["column", measure],
        [[found.names[tried[place]], number(float(losses[place]))] for place in order[:100]],
    )
    caption = "What it costs to shuffle the values of a column, on up to 1,000 rows."
    if len(tried) < found.X.shape[1]:
        caption += f" {len(tried):,} of {found.X.shape[1]:,} columns were tried in the time given."
    parts = figure(chart, caption, numbers)
    if found.picture is not None and len(tried) == found.X.shape[1]:
        values = np.zeros(found.X.shape[1])
        values[tried] = losses
        image = picture(values, found.picture, "importance of each pixel, dark where it is large")
        below = "<figcaption>all pixels</figcaption>"
        parts += f'<div class="pictures"><figure>{image}{below}</figure></div>'
    return [Section("importances", "Columns that matter", paragraph(said) + parts, half=True)]


def _curve_section(found: Evidence, seconds: float, random_state: int) -> list[Section]:
    """Return the learning curve, where the machine can be fitted again."""
    if found.task == "outliers" or "estimator" in found.machine.get_params(deep=False):
        return []
    curve = growth_curve(found, seconds, random_state)
    if len(curve.rows) < 2:
        return []
    x, measure = curve.rows.astype(np.float64), "accuracy" if found.task == "classes" else "R²"
    gain = float(curve.held_out[-1] - curve.held_out[-2])
    said = (
        f"From {curve.rows[-2]:,} to {curve.rows[-1]:,} rows the {measure} on other rows changes "
        f"by {gain:+.3g}: "
        + ("more rows would help." if gain > 0.005 else "more rows gain little.")
    )
    chart = line_chart(
        "Learning curve",
        said,
        [Series("rows held out", x, curve.held_out), Series("rows of the fit", x, curve.fitted)],
        labels=("rows of the fit", measure),
        logarithmic=True,
    )
    rows = [
        [number(int(a)), number(float(b)), number(float(c))]
        for a, b, c in zip(curve.rows, curve.fitted, curve.held_out, strict=True)
    ]
    numbers = table(["rows", "on these rows", "on rows held out"], rows)
    caption = "The machine, fitted to parts of the rows of this report."
    caption += "" if curve.complete else " The time was not enough for all of them."
    inside = paragraph(said) + figure(chart, caption, numbers)
    return [Section("learning", "Learning curve", inside, half=True)]


def _vectors(found: Evidence) -> Any:
    """Return the vectors of the machine."""
    machine = found.machine
    return getattr(machine, "support_vectors_", getattr(machine, "expansion_vectors_", None))


def _vector_section(found: Evidence) -> list[Section]:
    """Return the vectors with the largest coefficients as pictures, if rows are pictures."""
    vectors = _vectors(found)
    if found.picture is None or vectors is None:
        return []
    prepared = isinstance(found.model, Pipeline) and len(found.model.steps) > 1
    if vectors.shape[1] != found.X.shape[1]:
        return []
    machine = found.machine
    coef = getattr(machine, "dual_coef_", getattr(machine, "coef_", None))
    if coef is None or np.ndim(coef) != 2 or coef.shape[1] != vectors.shape[0]:
        return []
    weight = np.abs(np.asarray(coef)).sum(axis=0)
    shown = []
    for place in np.argsort(-weight, kind="stable")[:_MOST_VECTORS]:
        row = vectors[[place]].toarray()[0] if sparse.issparse(vectors) else vectors[place]
        image = picture(np.asarray(row), found.picture, f"vector {place}")
        said = f"{weight[place]:.3g}"
        shown.append(f"<figure>{image}<figcaption>{said}</figcaption></figure>")
    words = (
        f"{len(shown)} of {vectors.shape[0]:,} vectors, those with the largest coefficients (the "
        "number is the sum of their sizes over all problems)."
    )
    words += " They are shown after the preparation of the columns." if prepared else ""
    inside = paragraph(words) + f'<div class="pictures">{"".join(shown)}</div>'
    return [Section("vectors", "Vectors", inside)]


def _costs(found: Evidence, about: dict[str, Any]) -> str:
    """Return what the fit has cost and what a prediction costs."""
    certificate = getattr(found.machine, "certificate_", None)
    stored = sum(
        each.data.nbytes if sparse.issparse(each) else each.nbytes
        for each in vars(found.machine).values()
        if isinstance(each, np.ndarray) or sparse.issparse(each)
    )
    rows = [
        ["prediction of a row, in this report", f"{1e6 * found.seconds / found.n:.3g} µs"],
        ["arrays of the machine", f"{stored / 1e6:.3g} MB"],
    ]
    if about.get("seconds"):
        rows.append(["whole fit", f"{about['seconds']:.3g} s"])
    if about.get("peak_memory"):
        rows.append(["memory of the process, at most", f"{about['peak_memory'] / 1e6:,.0f} MB"])
    if certificate is not None:
        rows += [
            ["fit, its loop", f"{certificate.seconds:.3g} s"],
            ["steps", number(certificate.n_iter)],
            ["passes over all rows", number(certificate.n_passes)],
            ["kernel values", f"{certificate.n_kernel:.3g}"],
        ]
    return table(["", "value"], rows)
