"""The command line."""

from tilewright.cli.commands import app as app
