"""How the site is built: ``make docs``."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# One thread each: an example shows an answer, not a time.
os.environ.setdefault("OMP_NUM_THREADS", "2")

import widemargin  # noqa: E402

project = "widemargin"
author = "the widemargin developers"
copyright = "the widemargin developers"
version = release = widemargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "site_pages",
]
exclude_patterns = ["_ext", "_templates", "gallery/*.ipynb", "gallery/**/*.ipynb"]
templates_path = ["_templates"]
default_role = "literal"
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
# Pages begin with what they are about, at any depth; shapes such as [n, d] are no links.
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "widemargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": "widemargin",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "changelog": [], "faq": [], "start": []}


def _style(gallery_conf, fname):
    """Draw all pictures of the gallery alike."""
    import matplotlib as mpl

    mpl.rcdefaults()
    mpl.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 110,
            "font.size": 9.5,
            "axes.titlesize": 10.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": mpl.cycler(
                color=["#2563a8", "#d9772b", "#2f8f5b", "#8a4fa3", "#c2373d", "#6b7280"]
            ),
            "figure.constrained_layout.use": True,
            "legend.frameon": False,
        }
    )
    warnings.filterwarnings("error", category=FutureWarning)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(demo|cluster|__init__)\.py",
    "reset_modules": (_style,),
    "download_all_examples": False,
    "show_memory": False,
    # The page of times would load a script from elsewhere.
    "write_computation_times": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "copyfile_regex": r"",
    "plot_gallery": "True",
    "subsection_order": [
        "../examples/first_steps",
        "../examples/parameters",
        "../examples/classifiers",
        "../examples/numbers_and_outliers",
        "../examples/projections",
        "../examples/small_models",
    ],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "notebook_images": False,
}
