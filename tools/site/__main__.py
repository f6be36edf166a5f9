"""Draws the pictures of the site: ``python -m tools.site``."""

from tools.site.pictures import DIRECTORY, pictures

for name, canvas in pictures().items():
    canvas.write(DIRECTORY / name)
    print(DIRECTORY / name)
