"""Sphinx' settings; scripts/build_docs.py lays out the pages and calls it."""

import flashattn_rocm

project = "flashattn_rocm"
copyright = "flashattn_rocm contributors"
version = release = flashattn_rocm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "260px", "show_powered_by": False}
html_copy_source = False
