"""Import Dask, which is an optional package."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ResourceError


def engine() -> Any:
    """Return the package ``distributed``.

    Raises:
        tilewright.ResourceError: it is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise ResourceError.of(
            "cluster/not-installed",
            f"Dask distributed is not installed here ({error}); clusters need it",
            'pip install "tilewright[cluster]"',
        ) from None
    return distributed
