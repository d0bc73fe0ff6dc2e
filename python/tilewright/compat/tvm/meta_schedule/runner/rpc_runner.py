"""tvm.meta_schedule.runner.rpc_runner: names that can be imported, and refuse to be used."""

from __future__ import annotations

from typing import Any

from tilewright.meta_schedule.runner.rpc import RPCConfig, RPCRunner, refuse

__all__ = ["T_ARGUMENT_LIST", "T_ARG_INFO_JSON_OBJ_LIST", "RPCConfig", "RPCRunner", "default_alloc_argument"]

T_ARG_INFO_JSON_OBJ_LIST = list[Any]
T_ARGUMENT_LIST = list[Any]


def default_alloc_argument(session: Any, device: Any, args_info: Any, alloc_repeat: int) -> Any:
    """Raise an error: Tilewright has no RPC."""
    refuse()
