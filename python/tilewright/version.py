"""The version of the package, as records and the command line name it."""

__version__ = "0.1.0"
