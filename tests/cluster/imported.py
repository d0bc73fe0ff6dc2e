"""Imports Dask as `tilewright worker` configures it, for the fork server of tests (children.py)."""

from tilewright.cluster.worker import be_quiet

be_quiet()
