"""Pictures as pixels: PNG and GIF, with the optional libraries CairoSVG and Pillow."""

import io
from collections.abc import Sequence
from typing import Any

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
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"GIF needs Pillow: {_HINT}") from None
    images = []
    for frame in frames:
        image = Image.open(io.BytesIO(png(frame, scale=scale))).convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        images.append(Image.alpha_composite(ground, image).convert("RGB"))
    palette = images[-1].quantize(colors=255)
    paletted = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [round(1000 * seconds)] * (len(images) - 1) + [round(1000 * last_seconds)]
    file = io.BytesIO()
    paletted[0].save(
        file, "GIF", save_all=True, append_images=paletted[1:], duration=durations, loop=0
    )
    return file.getvalue()


def _cairosvg() -> Any:
    try:
        import cairosvg
    except ImportError:
        raise ImportError(f"PNG needs CairoSVG: {_HINT}") from None
    except OSError as error:
        raise ImportError(f"PNG needs the cairo library beside CairoSVG: {error}") from None
    return cairosvg
