"""The release number, which the build reads too."""

__version__ = "0.3.0"
