"""Drawings as SVG: a canvas with text, bars, lines and dots, whose text is the same each time."""

from __future__ import annotations

from html import escape
from pathlib import Path

INK, MUTED, GRID, PAPER = "#1f2933", "#5f6c7b", "#d9e0e7", "#ffffff"
BLUE, GREY, ORANGE, GREEN = "#1f6fae", "#9aa7b4", "#c2570c", "#2f8f5b"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Canvas:
    """A drawing of a given size, with a background of its own, so that it can be read on light and dark pages."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._width, self._height = width, height
        self._parts = [f"<title>{escape(title)}</title>"]
        self.box(0, 0, width, height, PAPER, radius=8)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        color: str = INK,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Writes a line; ``y`` is its base line."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{color}" text-anchor="{anchor}"{weight}>'
            f"{escape(text)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 2, opacity: float = 1
    ) -> None:
        """Draws a filled rectangle."""
        shade = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}" rx="{radius:g}" fill="{fill}"{shade}/>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str, *, width: float = 1, dashes: str = ""
    ) -> None:
        """Draws a straight line."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="{width:g}"{dashed}/>'
        )

    def dot(self, x: float, y: float, radius: float, fill: str, *, hollow: bool = False) -> None:
        """Draws a circle; a hollow one is a ring."""
        inside = PAPER if hollow else fill
        self._parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{inside}" stroke="{fill}" stroke-width="2"/>'
        )

    def svg(self) -> str:
        """Returns the drawing."""
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self._width} {self._height}" width="{self._width}" '
            f'height="{self._height}" role="img" font-family="{_FONT}">\n{body}\n</svg>\n'
        )

    def write(self, file: Path) -> None:
        """Writes the drawing to a file."""
        file.write_text(self.svg(), encoding="utf-8")
