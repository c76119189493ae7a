"""Sphinx's configuration. gather.py puts this file, all pages and VERSION into one folder."""

from pathlib import Path

project = "hoist"
author = "the hoist authors"
version = release = (Path(__file__).parent / "VERSION").read_text(encoding="utf-8").strip()
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
root_doc = "index"
exclude_patterns = ["included"]
highlight_language = "none"
html_theme = "furo"
html_title = f"hoist {version}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}  # there is no place on the network to edit a page at
