"""Pictures: pure functions from plain values to SVG, drawn with the classes of templates/style.css."""
