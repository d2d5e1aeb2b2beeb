"""The frame of the HTML pages: style, script and escaping. Each page is one file that asks for nothing from elsewhere."""
