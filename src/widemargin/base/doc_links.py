"""Where the page of an estimator is, for its picture in a notebook.

scikit-learn draws an estimator with a link to its documentation. The address is that of the
released documentation, or of a site that one has built: ``WIDEMARGIN_DOCS=file:///.../html``.
"""

from __future__ import annotations

import os

__all__ = ["MODULE", "TEMPLATE"]

_ADDRESS = "https://widemargin.readthedocs.io/en/stable"

# The names that scikit-learn looks for have underscores; estimators take the values from here.
MODULE = "widemargin"
TEMPLATE = (
    os.environ.get("WIDEMARGIN_DOCS", _ADDRESS).rstrip("/")
    + "/generated/widemargin.{estimator_name}.html"
)
