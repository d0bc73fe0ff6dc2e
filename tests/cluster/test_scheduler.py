"""Addresses at which there is no scheduler: what is reported, and how soon."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.cli.commands import app
from tilewright.cluster import scheduler, worker
from tilewright.cluster.connection import Cluster

from .machines import PATIENCE, Machines, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that answers nothing, as a dashboard does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "missing port"),
        ("tcp://head", "missing port"),
        ("tcp://:8786", "the host is missing"),
        ("http://head:8787", "http:// is not a protocol"),
        ("tcp:/head:8786", "invalid address"),
        ("tcp://head:port", "'port' is not a port"),
        ("127.0.0.1:99999", "'99999' is not a port: ports are 1 to 65535"),
        ("ucx://head:8786", "ucx"),
    ],
)
def test_what_is_no_address_is_an_error_of_the_argument(address: str, why: str) -> None:
    with pytest.raises(tw.ArgumentError, match=why) as error:
        scheduler.check_address(address)
    assert error.value.code == "cluster/address" and "tcp://head:8786" in error.value.hint
    done = CliRunner().invoke(app, ["worker", address])
    assert done.exit_code == 1 and why in done.output and "target of this host" not in done.output


def test_addresses_of_dask_are_taken() -> None:
    assert scheduler.check_address("head:8786") == "tcp://head:8786"
    for address in ("tcp://head:8786", "tls://[::1]:8786", "tcp://10.0.0.1:1", "inproc://10.0.0.1/1/1"):
        assert scheduler.check_address(address) == address


def test_why_no_scheduler_answers(silent: str, unused_address: str) -> None:
    certificates = scheduler.security(silent)
    for address, seconds, why in (
        (silent, 0.4, "does not answer as a Dask scheduler over tcp"),
        (unused_address, 0.4, "Connect call failed"),
        ("tcp://no-such-host.invalid:8786", 60.0, "the host 'no-such-host.invalid' is not known"),
    ):
        with pytest.raises(tw.ResourceError, match=why) as error:
            scheduler.find(address, seconds, certificates)
        assert error.value.code == "cluster/no-scheduler" and address in error.value.message


@pytest.fixture
def unused_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_a_search_in_an_event_loop_looks_for_the_scheduler_too(silent: str) -> None:
    async def search() -> None:
        scheduler.find(silent, 0.2, scheduler.security(silent))

    with pytest.raises(tw.ResourceError, match="does not answer"):
        asyncio.run(search())


def test_missing_certificates_are_reported(tmp_path: Path) -> None:
    import dask

    with pytest.raises(tw.ResourceError, match="needs certificates") as none:
        scheduler.security("tls://head:8786")
    assert none.value.code == "cluster/tls" and "encrypt" in none.value.hint
    with dask.config.set({"distributed.comm.require-encryption": True}):
        with pytest.raises(tw.ResourceError, match="requires encryption") as plain:
            scheduler.security("tcp://head:8786")
        assert "tls://" in plain.value.hint
    missing = {"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
    with (
        dask.config.set({"distributed.comm.tls.client": missing, "distributed.comm.tls.ca-file": missing["cert"]}),
        pytest.raises(tw.ResourceError, match="No such file"),
    ):
        scheduler.security("tls://head:8786")


#: A search on the cluster at an address.
_SEARCH = """
import sys
from tests.search.programs import scale, tiles
import tilewright as tw
result = tw.tune(scale, space=tiles, trials=2, progress=None, database="memory", cluster=sys.argv[1])
print(result.stop_reason, *[row[1] for row in result.hosts.rows])
"""


def test_connections_are_encrypted_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    (command,) = re.findall(r"^\$ (openssl .*)$", page, re.MULTILINE)
    (configuration,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / "dask"
    folder.mkdir()
    (folder / "tls.yaml").write_text(configuration.replace("/etc/tilewright", str(tmp_path)))

    def search(address: str, environment: dict[str, str]) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", _SEARCH, address],
            **{"cwd": ROOT, "env": environment, "capture_output": True, "text": True, "check": False},
        )
        return done.stdout.strip(), done.stderr

    machines = Machines(tmp_path)
    plain = dict(machines.environment)
    machines.environment["DASK_CONFIG"] = str(folder)
    with contextlib.closing(machines):
        machines.scheduler("tls")
        assert machines.address.startswith("tls://")
        machines.worker("--measure", "1", "--build", "1")
        found, errors = search(machines.address, machines.environment)
        assert found.split()[0] == "trials" and int(found.split()[1]) > 0, errors
        # Who has no certificate gets no connection, whether or not it asks for an encrypted one.
        assert "needs certificates" in search(machines.address, plain)[1]
        assert (
            "does not answer as a Dask scheduler over tcp" in search(machines.address.replace("tls", "tcp"), plain)[1]
        )


def test_a_worker_that_waits_for_a_scheduler_ends_at_ctrl_c(silent: str, tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.address = silent
    worker = machines.worker("--measure", "0", "--build", "1", wait=False)
    try:
        until(lambda: "builds 1 at a time" in machines.logs[0].read_text())
        worker.send_signal(signal.SIGINT)
        assert worker.wait(20) == 0
    finally:
        machines.close()


_BEGUN, _GO_ON = threading.Event(), threading.Event()


def block() -> None:
    """A task that goes on when its test is over."""
    _BEGUN.set()
    _GO_ON.wait(PATIENCE)


def test_a_worker_closes_without_waiting_for_its_tasks() -> None:
    """Also where Dask closes it, such as one that was silent, which then joins again."""

    async def close() -> None:
        async with (
            distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as made,
            worker.worker_kind()(made.address, nthreads=1, dashboard=False) as closing,
            distributed.Client(made.address, asynchronous=True) as client,
        ):
            _ = client.submit(block)
            assert await asyncio.to_thread(_BEGUN.wait, PATIENCE)
            await asyncio.wait_for(
                closing.close(timeout=10 * PATIENCE, reason="worker-heartbeat-missing"), PATIENCE / 2
            )

    try:
        asyncio.run(close())
    finally:
        _GO_ON.set()


def test_a_worker_soon_gives_up_one_that_was_killed(unused_address: str) -> None:
    # An object that only a killed worker had is built again; whoever was fetching it waits for this connection first.
    program = """
import asyncio, sys
from tilewright.cluster.worker import be_quiet
be_quiet()
from distributed.comm import connect
asyncio.run(connect(sys.argv[1]))
"""
    done = subprocess.run([sys.executable, "-c", program, unused_address], capture_output=True, text=True, check=False)
    assert "Timed out trying to connect" in done.stderr and "after 5 s" in done.stderr


def test_two_workers_of_one_name(machines: Machines) -> None:
    machines.worker("--measure", "0", "--build", "1", "--name", "twin")
    with pytest.raises(tw.ArgumentError, match="has the name 'twin'") as error:
        worker.run(machines.address, 0, 1, "twin")
    assert error.value.code == "cluster/name" and "--name" in error.value.hint


def test_a_client_that_is_closed(machines: Machines) -> None:
    client = distributed.Client(machines.address)
    client.close()
    with pytest.raises(tw.ArgumentError, match="closed") as error:
        Cluster(client)
    assert error.value.code == "cluster/kind"


def test_a_client_that_is_asynchronous(machines: Machines) -> None:
    async def search() -> None:
        async with distributed.Client(machines.address, asynchronous=True) as client:
            with pytest.raises(tw.ArgumentError, match="is asynchronous") as error:
                Cluster(client)
            assert error.value.code == "cluster/kind"

    asyncio.run(search())
