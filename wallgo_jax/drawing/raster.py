"""Pictures as pixels: PNG and GIF, with the optional libraries CairoSVG and Pillow."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

_HINT = "pip install 'wallgo-jax[png]'"


def png(svg: str, *, scale: float = 2.0) -> bytes:
    """Draw an SVG document as a PNG file, `scale` pixels a unit.

    Raises:
      ImportError: if CairoSVG is not installed, or not the cairo library that it needs.
    """
    return _cairosvg().svg2png(bytestring=svg.encode(), scale=scale)


def gif(frames: Sequence[str], *, seconds: float, last_seconds: float, scale: float) -> bytes:
    """Draw SVG documents of one size as an endless animated GIF, each for some seconds.

    Raises:
      ImportError: as `png`, or if Pillow is not installed.
    """
    image = _pillow("GIF")
    images = [_on_white(image, frame, scale) for frame in frames]
    palette = images[-1].quantize(colors=255)
    paletted = [each.quantize(palette=palette, dither=image.Dither.NONE) for each in images]
    durations = [round(1000 * seconds)] * (len(images) - 1) + [round(1000 * last_seconds)]
    file = io.BytesIO()
    paletted[0].save(
        file, "GIF", save_all=True, append_images=paletted[1:], duration=durations, loop=0
    )
    return file.getvalue()


def rgb_array(svg: str, *, scale: float) -> np.ndarray:
    """Draw an SVG document on white as uint8[height, width, 3], `scale` pixels a unit.

    Raises:
      ImportError: as `gif`.
    """
    return np.array(_on_white(_pillow("an array of pixels"), svg, scale))


def _on_white(image: Any, svg: str, scale: float) -> Any:
    """Return the document as Pillow's RGB image."""
    drawn = image.open(io.BytesIO(png(svg, scale=scale))).convert("RGBA")
    ground = image.new("RGBA", drawn.size, "white")
    return image.alpha_composite(ground, drawn).convert("RGB")


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"{what} needs Pillow: {_HINT}") from None
    return Image


def _cairosvg() -> Any:
    try:
        import cairosvg
    except ImportError:
        raise ImportError(f"PNG needs CairoSVG: {_HINT}") from None
    except OSError as error:
        raise ImportError(f"PNG needs the cairo library beside CairoSVG: {error}") from None
    return cairosvg
