"""Playing at a board: the page, its local server, a page for any host, the widget."""
