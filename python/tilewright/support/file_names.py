"""Names of files that are not text: Python has them with halves of characters (lone surrogates), which UTF-8 does not
have."""

from __future__ import annotations

import errno
import os

from tilewright.errors import ArgumentError, ArgumentTypeError


def printable(file: str) -> str:
    """The name as messages show it, and as the core knows it."""
    return file if file.isascii() else file.encode(errors="backslashreplace").decode()


def path_for_core(name: str, path: str | os.PathLike[str]) -> str:
    """A path that the core is to open.

    Args:
        name: of the parameter.
        path: the argument.

    Raises:
        tilewright.ArgumentError: it is no path, not one of UTF-8, or too long for one.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ArgumentTypeError.of("arguments/path", f"{name} is {path!r:.80}; it is the path of a file or a folder")
    if "\0" in text or printable(text).encode() != text.encode(errors="surrogatepass"):
        raise ArgumentError.of(
            "arguments/path",
            f"{name} is {text!r}, which {'contains a zero byte' if chr(0) in text else 'is not UTF-8 text'}",
            "choose another path, or rename the folder",
        )
    try:
        os.lstat(text)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            message = f"{name} is a path of {len(text)} characters, which no file system takes: {text:.60}..."
            raise ArgumentError.of("arguments/path", message, "choose a shorter one") from None
    return text
