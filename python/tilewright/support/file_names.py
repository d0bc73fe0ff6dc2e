"""File names: their length in bytes, and names that are not valid UTF-8, which Python represents with lone
surrogates."""

from __future__ import annotations

import errno
import os

from tilewright.errors import ArgumentError, ArgumentTypeError


def printable(file: str) -> str:
    """Return the name in the form that messages and the core use."""
    return file if file.isascii() else file.encode(errors="backslashreplace").decode()


def shortened(name: str, most: int) -> str:
    """Return the beginning of a name that has at most so many bytes, which is what file systems limit."""
    return name.encode()[:most].decode(errors="ignore")


def path_for_core(name: str, path: str | os.PathLike[str]) -> str:
    """Return a path as text for the core, which will open it.

    Args:
        name: name of the parameter.
        path: the argument.

    Raises:
        tilewright.ArgumentError: the argument is not a path, not valid UTF-8, or too long.
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
