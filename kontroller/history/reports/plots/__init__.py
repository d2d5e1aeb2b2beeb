"""Pictures: pure functions from plain values to SVG, with the classes of templates/style.css."""
