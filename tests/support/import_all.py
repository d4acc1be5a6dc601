"""Imports every module of both packages: `python -m tests.support.import_all [--without-posix]`.

With the option what only POSIX systems have is hidden first, as far as other libraries do without.
"""

import importlib
import signal
import sys

from tests.support.import_graph import read_modules

_MODULES = ("fcntl", "grp", "pwd", "resource", "termios")
_SIGNALS = ("SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN")
"""Names of signals and handlers that Windows has."""


def hide_posix() -> None:
    """Let this process import no module and ask for no signal that Windows lacks."""
    sys.modules.update(dict.fromkeys(_MODULES))
    for name in dir(signal):
        if name.startswith("SIG") and name not in _SIGNALS:
            delattr(signal, name)


def import_all() -> None:
    """Import each module by its name."""
    for path in read_modules():
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        importlib.import_module(name)


if __name__ == "__main__":
    if "--without-posix" in sys.argv[1:]:
        hide_posix()
    import_all()
