"""Models in files that can be read without trust: skops, with a list of our own types.

A pickle runs whatever its writer put into it. A skops file is a description of objects, and only
types on a list are made from it. The list below is what a model of this library can hold; types of
NumPy, SciPy and scikit-learn that skops trusts by itself may be in it as well.

skops is optional (``pip install 'widemargin[cli]'``) and imported when a file is read or written.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["load", "save", "trusted_types"]

_ESTIMATORS = (
    "widemargin.base.span_map.SpanMap",
    "widemargin.discriminant.kernel_fisher.KernelFisherDA",
    "widemargin.discriminant.local_fisher.LocalFisherDA",
    "widemargin.discriminant.locality_preserving.LocalityPreservingProjection",
    "widemargin.discriminant.margin_metric.MarginMetric",
    "widemargin.discriminant.max_margin.MaxMarginDA",
    "widemargin.discriminant.maxi_min.MaxiMinDA",
    "widemargin.discriminant.pairwise_accuracy.PairwiseAccuracyDA",
    "widemargin.outliers.core_vector_description.CoreVectorDescription",
    "widemargin.outliers.margin_one_class.MarginOneClass",
    "widemargin.regression.core_vector_regressor.CoreVectorRegressor",
    "widemargin.regression.margin_regressor.MarginRegressor",
    "widemargin.regression.margin_regressor_cv.MarginRegressorCV",
    "widemargin.sparse.reduced_set.ReducedSetClassifier",
    "widemargin.sparse.reduced_svm.ReducedSVMClassifier",
    "widemargin.sparse.sparse_fisher.SparseFisherClassifier",
    "widemargin.sparse.sparse_margin.SparseMarginClassifier",
    "widemargin.sparse.sparse_one_class.SparseOneClass",
    "widemargin.sparse.sparse_regressor.SparseMarginRegressor",
    "widemargin.svm.ball_vector.BallVectorClassifier",
    "widemargin.svm.core_vector.CoreVectorClassifier",
    "widemargin.svm.margin_classifier.MarginClassifier",
    "widemargin.svm.margin_classifier_cv.MarginClassifierCV",
)
# What estimators hold: plain values, and kernels and strategies that a user may give.
_PARTS = (
    "widemargin.base.frame_columns.FrameColumns",
    "widemargin.certificate.Certificate",
    "widemargin.kernels.distances.Exponential",
    "widemargin.kernels.distances.InverseDistance",
    "widemargin.kernels.distances.InverseSquaredDistance",
    "widemargin.kernels.distances.Laplacian",
    "widemargin.kernels.distances.RBF",
    "widemargin.kernels.products.CosinePower",
    "widemargin.kernels.products.Linear",
    "widemargin.kernels.products.NormalizedPolynomial",
    "widemargin.kernels.products.Polynomial",
    "widemargin.kernels.products.Sigmoid",
    "widemargin.span.landmarks.CoreVectors",
    "widemargin.span.landmarks.GivenVectors",
    "widemargin.span.landmarks.KMeansVectors",
    "widemargin.span.landmarks.LeverageVectors",
    "widemargin.span.landmarks.RandomVectors",
    "widemargin.svm.margin_classifier.CellParameters",
)
# Plain data of others, which skops does not trust by itself in every version.
_PLAIN = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.frozen._frozen.FrozenEstimator",
)


def trusted_types() -> list[str]:
    """Return the names of the types, beside those that skops trusts, that `load` makes.

    Returns
    -------
    list of str
        Full names of classes: our estimators, what they hold, and plain data.

    Examples
    --------
    >>> from widemargin.model_files import trusted_types
    >>> "widemargin.svm.margin_classifier.MarginClassifier" in trusted_types()
    True
    """
    return [*_ESTIMATORS, *_PARTS, *_PLAIN]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model into a file that `load` reads.

    The file is complete or not there: it is written beside its place and then moved.

    Parameters
    ----------
    model : estimator
        An estimator of this library, or a pipeline of scikit-learn's that holds one.
    path : str or path
        Where to write; ``.skops`` is the usual ending.

    Raises
    ------
    ValueError
        If the model holds something that `load` would refuse, such as a kernel that is a function.

    See Also
    --------
    load : Read it.
    """
    skops = _skops()
    stored = skops.dumps(model, compression=zipfile.ZIP_DEFLATED)
    unknown = _unknown(skops, stored)
    if unknown:
        raise ValueError(
            f"model={type(model).__name__} holds {', '.join(unknown)}, which a file cannot hold so "
            "that reading it runs nothing; use a kernel by its name instead of a function, and "
            "numbers instead of objects."
        )
    path = Path(path)
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(stored)
        # What mkstemp makes is for its owner only; a model is a file like others.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(written, 0o666 & ~mask)
        os.replace(written, path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file; nothing that the file says is run.

    Parameters
    ----------
    path : str or path
        What `save` has written, or the command ``widemargin fit``.

    Returns
    -------
    estimator
        The model.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a model, or holds types that are not on the list of `trusted_types`.

    See Also
    --------
    save : Write it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import widemargin
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> machine = widemargin.MarginClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     widemargin.save(machine, Path(folder) / "model.skops")
    ...     again = widemargin.load(Path(folder) / "model.skops")
    >>> bool((again.predict(X) == machine.predict(X)).all())
    True
    """
    skops = _skops()
    stored = Path(path).read_bytes()
    if not stored:
        raise ValueError(f"{path} is empty; it is not a model.")
    try:
        unknown = _unknown(skops, stored)
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a model file of skops ({type(error).__name__}: {error}); give a file "
            "that widemargin.save or `widemargin fit` has written."
        ) from None
    if unknown:
        raise ValueError(
            f"{path} asks for {', '.join(unknown)}, which are not on the list of trusted types; "
            "nothing of it was run. Read it with skops itself if you know who wrote it."
        )
    try:
        return skops.loads(stored, trusted=trusted_types())
    except Exception as error:
        # A file that is damaged, or of a version whose classes were others.
        raise ValueError(
            f"{path} cannot be made into a model ({type(error).__name__}: {error}); it is damaged, "
            "or from another version of widemargin or scikit-learn. Fit it again."
        ) from error


def _unknown(skops: ModuleType, stored: bytes) -> list[str]:
    """Return the types of a stored model that nobody trusts."""
    return sorted(set(skops.get_untrusted_types(data=stored)) - set(trusted_types()))


def _skops() -> ModuleType:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "Model files need skops: pip install 'widemargin[cli]' (or pip install skops)."
        ) from error
    found: ModuleType = skops.io
    return found
