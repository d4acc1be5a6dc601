"""One position as an HTML page that needs nothing else: the picture, and the diagram as text."""

from html import escape
from string import Template

from wallgo_jax.drawing.theme import Theme
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import Snapshot


def draw(snapshot: Snapshot, theme: Theme, *, svg: str, diagram: str) -> str:
    """Draw the page.

    Args:
      snapshot: the position, for the title.
      theme: colours of the page.
      svg: the position's picture.
      diagram: the position as text that can be read again.
    """
    return _PAGE.substitute(
        title=escape(f"WallGo, ply {snapshot.ply}: {captions.status(snapshot)}"),
        svg=svg,
        diagram=escape(diagram),
        scheme=theme.name,
        page=theme.page,
        ink=theme.ink,
        quiet=theme.quiet,
    )


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>$title</title>
<style>
  :root { color-scheme: $scheme; }
  body { margin: 0; padding: 1rem; background: $page; color: $ink;
         font: 16px/1.4 Helvetica, Arial, sans-serif; }
  main { max-width: 40rem; margin: auto; }
  svg { display: block; width: min(100%, 85vh); height: auto; margin: auto; }
  summary { color: $quiet; }
  pre { overflow-x: auto; }
</style>
</head>
<body>
<main>
$svg
<details><summary>as text</summary><pre>$diagram</pre></details>
</main>
</body>
</html>
""")
