"""Find the scheduler at an address, before Dask connects to it.

Dask retries a connection for up to 30 s, cannot be interrupted during that time, and only then reports an invalid
address. Deleting a client that failed to connect takes another 20 s.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
from pathlib import Path
from typing import Any

from tilewright.cluster.engine import engine
from tilewright.errors import ArgumentError, ResourceError

#: of addresses whose host is resolved, and that have a port
_WITH_PORT = ("tcp", "tls")


def check_address(address: str) -> str:
    """Return the address of a scheduler with its scheme.

    Raises:
        tilewright.ArgumentError: no scheduler can have it.
        tilewright.ResourceError: Dask is not installed.
    """
    engine()
    from distributed.comm import parse_address, parse_host_port
    from distributed.comm.registry import backends

    try:
        scheme, location = parse_address(address)
        if scheme not in backends:
            raise ValueError(f"{scheme}:// is not a protocol of Dask")
        if scheme in _WITH_PORT:
            _, colon, port = location.rpartition(":")
            if colon and not (port.isdecimal() and 0 < int(port) < 65536):
                raise ValueError(f"{port!r} is not a port: ports are 1 to 65535")
            if not parse_host_port(location)[0]:
                raise ValueError("the host is missing")
        else:
            backends[scheme].get_connector()
    except (ValueError, TypeError, ImportError, RuntimeError) as error:  # of a protocol that is not installed: others
        raise ArgumentError.of(
            "cluster/address",
            f"{address!r} is not the address of a scheduler: {error}",
            "such as tcp://head:8786; `dask scheduler` prints its own",
        ) from None
    return f"{scheme}://{location}"


def security(address: str, given: Any = None) -> Any:
    """Return the certificates for connections to an address: `given`, or those of Dask's configuration.

    Raises:
        tilewright.ResourceError: there are none, or they do not fit the address.
    """
    hint = "docs/cluster.md, 'How do I encrypt connections?', has the configuration"
    encrypted = address.startswith("tls://")
    try:
        found = engine().Security() if given is None else given
        context = found.get_connection_args("client").get("ssl_context")
    except (OSError, ValueError) as error:  # OSError: of files, without their names
        files = {} if given is not None else engine().Security().get_tls_config_for_role("client")
        missing = [str(file) for file in files.values() if file and not Path(file).exists()]
        what = ", ".join([f"Dask's configuration of TLS: {error}", *missing])
        raise ResourceError.of("cluster/tls", what, hint) from None
    if encrypted and context is None:
        raise ResourceError.of("cluster/tls", f"{address} needs certificates, and Dask's configuration has none", hint)
    if not encrypted and found.require_encryption:
        what = f"Dask's configuration requires encryption, and {address} has none"
        raise ResourceError.of("cluster/tls", what, "addresses with TLS begin with tls://")
    return found


async def identity(address: str, seconds: float, certificates: Any, role: str = "client") -> dict[str, Any]:
    """Return what the scheduler at an address reports about itself.

    Raises:
        OSError: none answers within so many seconds, or what answers is no scheduler.
    """

    async def ask() -> dict[str, Any]:
        await _resolve(address)
        arguments = certificates.get_connection_args(role)
        async with engine().rpc(address, timeout=seconds, connection_args=arguments) as scheduler:
            return dict(await scheduler.identity())

    try:
        return await asyncio.wait_for(ask(), seconds)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        # Whether the time given here or Dask's own ends first is chance, and neither says why no connection opened.
        raise OSError(await _why_not(address) or str(error) or f"no answer within {seconds:g} s") from None


def _host_and_port(address: str) -> tuple[str, int] | None:
    from distributed.comm import parse_address, parse_host_port

    scheme, location = parse_address(address)
    return parse_host_port(location) if scheme in _WITH_PORT else None


async def _resolve(address: str) -> None:
    """Look a host up, because Dask hides the reason if that fails."""
    if (where := _host_and_port(address)) is None:
        return
    try:
        await asyncio.get_running_loop().getaddrinfo(*where)
    except OSError as error:
        raise OSError(f"the host {where[0]!r} is not known: {error.strerror}") from None


async def _why_not(address: str) -> str:
    """Return why no connection to an address can be opened; "" if that is not known within 5 s.

    If one can be opened, what listens there is no scheduler with this protocol, or one that is suspended.
    """
    if (where := _host_and_port(address)) is not None:
        try:
            await _resolve(address)
            _, writer = await asyncio.wait_for(asyncio.open_connection(*where), 5.0)
            writer.close()
            scheme = address.partition(":")[0]
            how = "TLS with these certificates" if scheme == "tls" else scheme
            return f"what listens there does not answer as a Dask scheduler over {how}"
        except TimeoutError:
            pass
        except OSError as error:
            return error.strerror or str(error)
    return ""


def find(address: str, seconds: float, certificates: Any) -> None:
    """Check that a scheduler answers at an address.

    Raises:
        tilewright.ResourceError: none does.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop, as in a notebook
        asked = thread.submit(lambda: asyncio.run(identity(address, seconds, certificates)))
        try:
            asked.result()
        except OSError as error:
            raise no_scheduler(address, error) from None


def no_scheduler(address: str, why: object) -> ResourceError:
    """Return the error of an address at which no scheduler answers."""
    return ResourceError.of(
        "cluster/no-scheduler",
        f"no scheduler answers at {address}: {why}",
        "start one with: dask scheduler; addresses with TLS begin with tls://, and port 8787 is the dashboard's",
    )


class _Reconnecting(logging.Filter):
    """Drops what Dask logs as an error while a client tries to connect again, which the session reports by itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "Failed to reconnect to scheduler" not in record.getMessage()


_RECONNECTING = _Reconnecting()


def keep_quiet() -> None:
    """Keep Dask from logging that a client cannot connect again."""
    with contextlib.suppress(Exception):
        logging.getLogger("distributed.client").addFilter(_RECONNECTING)
