"""sqlite-vec on the standard library's SQLite, whose builds often cannot load extensions."""

from __future__ import annotations

import ctypes
import sqlite3
from pathlib import Path


def connect(path: Path) -> sqlite3.Connection:
    """A connection that knows ``vec0`` tables.

    Raises ``ImportError`` without the package sqlite-vec, ``OSError`` where it cannot be loaded.
    """
    import sqlite_vec

    connection = sqlite3.connect(path)
    if hasattr(connection, "enable_load_extension"):
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
        return connection
    connection.close()
    return _by_auto_extension(path, sqlite_vec.loadable_path())


def _by_auto_extension(path: Path, extension: str) -> sqlite3.Connection:
    """Have SQLite itself start the extension for the one connection that is opened here."""
    sqlite = ctypes.CDLL(_mapped_sqlite())
    vec = ctypes.CDLL(_file(extension))
    sqlite.sqlite3_auto_extension.argtypes = [ctypes.c_void_p]
    sqlite.sqlite3_cancel_auto_extension.argtypes = [ctypes.c_void_p]
    start = ctypes.cast(vec.sqlite3_vec_init, ctypes.c_void_p)
    if sqlite.sqlite3_auto_extension(start):
        raise OSError("SQLite takes no extension")
    try:
        return sqlite3.connect(path)
    finally:
        sqlite.sqlite3_cancel_auto_extension(start)


def _mapped_sqlite() -> str:
    """The library that the module ``sqlite3`` works with, as it is mapped into this process."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        for line in maps.read_text(encoding="utf-8").splitlines():
            if "/libsqlite3.so" in line:
                return line.split(maxsplit=5)[5]
    raise OSError("SQLite is no shared library here")


def _file(stem: str) -> str:
    """The file of a loadable path, which sqlite-vec gives without its suffix."""
    for suffix in (".so", ".dylib", ".dll", ""):
        if Path(stem + suffix).is_file():
            return stem + suffix
    raise OSError("the library of sqlite-vec is missing")
