"""Makes and checks the virtual environment. Standard library only, called by the Makefile.

Python 3.6 must still be able to parse this file, so that an old Python gets one clear sentence
and not a syntax error. ``.venv/studio-stamp.json`` is written last: without a fitting stamp the
environment counts as half made, whatever interrupted it.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Dict, List, Optional, Tuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = (3, 11)
CLIENTS = "requirements-clients.txt"
STEPS = ("Collecting", "  Downloading", "Building", "Installing")
NO_NETWORK = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "Connection refused",
    "Network is unreachable",
    "Temporary failure in name resolution",
)


class SetupError(Exception):
    """Setup cannot go on. The message is one sentence for the person who ran it."""


class Environment:
    """The virtual environment of one checkout and what its stamp says of it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.path = os.path.join(root, ".venv")
        self.stamp = os.path.join(self.path, "studio-stamp.json")
        self.log = os.path.join(self.path, "install.log")
        windows = os.name == "nt"
        folder, name = ("Scripts", "python.exe") if windows else ("bin", "python")
        self.python = os.path.join(self.path, folder, name)

    def wanted(self, dev: bool) -> str:
        """Hash of the requirements that a setup installs."""
        digest = hashlib.sha256()
        for name in requirement_files(dev):
            with open(os.path.join(self.root, name), "rb") as file:
                digest.update(file.read())
        return digest.hexdigest()

    def stamped(self) -> Dict[str, str]:
        """What the stamp holds; empty without a whole one, or when the checkout was moved."""
        try:
            with open(self.stamp, encoding="utf-8") as file:
                stamp = json.load(file)
        except (OSError, ValueError):
            return {}
        fits = isinstance(stamp, dict) and stamp.get("path") == self.path
        return stamp if fits and os.path.exists(self.python) else {}

    def is_ready(self, dev: bool) -> bool:
        """Whether everything that is wanted has been installed."""
        return self.stamped().get("dev" if dev else "run") == self.wanted(dev)

    def can_install(self) -> bool:
        """Whether the Python inside runs, is new enough and has pip."""
        probe = "import sys, pip; sys.exit(sys.version_info < (%d, %d))" % OLDEST
        try:
            return run([self.python, "-c", probe]).returncode == 0
        except OSError:
            return False

    def write_stamp(self, dev: bool) -> None:
        """Say that the environment is whole; the file appears in one step."""
        stamp = self.stamped()
        stamp["path"] = self.path
        stamp["run"] = self.wanted(False)
        if dev:
            stamp["dev"] = self.wanted(True)
        draft = self.stamp + ".new"
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(stamp, file, indent=2)
        os.replace(draft, self.stamp)


def requirement_files(dev: bool) -> List[str]:
    """The files that name the packages, the base file first."""
    return ["requirements.txt"] + (["requirements-dev.txt", CLIENTS] if dev else [])


def run(command: List[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end and keep what it says."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )


def setup(environment: Environment, dev: bool) -> None:
    """Bring the environment to what the requirements say. Raises ``SetupError``."""
    check_python()
    if environment.is_ready(dev):
        return
    check_writable(environment.root)
    known = environment.stamped()
    if not os.path.lexists(environment.path):
        make(environment)
    elif not environment.can_install():
        say("The virtual environment in .venv is broken or half made: making it again.")
        remove(environment)
        make(environment)
    elif not known:
        say("The virtual environment in .venv is half made: finishing it.")
    install(environment, dev)
    environment.write_stamp(dev)


def check_python() -> None:
    """Refuse a Python that is too old."""
    if sys.version_info < OLDEST:
        oldest, found = dotted(OLDEST), dotted(sys.version_info[:3])
        raise SetupError(
            "Python %s or newer is needed, and this one is %s; name another with PYTHON=..."
            % (oldest, found)
        )


def check_writable(root: str) -> None:
    """Refuse a checkout that cannot be written; only writing tells."""
    try:
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise SetupError("Cannot write to %s (%s)." % (root, reason(error))) from None


def make(environment: Environment) -> None:
    """Make an empty environment."""
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        raise SetupError(
            "This Python cannot make virtual environments; "
            "install its venv module (on Debian: apt install python3-venv)."
        )
    say("Making the virtual environment in .venv ...")
    done = run([sys.executable, "-m", "venv", environment.path])
    if done.returncode != 0:
        raise SetupError("The virtual environment could not be made (%s)." % last_line(done.stdout))


def remove(environment: Environment) -> None:
    """Remove what is left of an environment; a link is removed, not what it points at."""
    try:
        if os.path.islink(environment.path) or os.path.isfile(environment.path):
            os.remove(environment.path)
        else:
            shutil.rmtree(environment.path)
    except OSError as error:
        raise SetupError("Cannot remove %s (%s)." % (environment.path, reason(error))) from None


def install(environment: Environment, dev: bool) -> None:
    """Install the pinned packages, with one progress line and the details in a log."""
    name = requirement_files(dev)[1 if dev else 0]
    say("Installing the packages of %s (minutes, once) ..." % name)
    run_pip(environment, ["-r", name])
    if dev:
        # Their own requirements would move versions of ours, for what they never import.
        run_pip(environment, ["--no-deps", "-r", CLIENTS])


def run_pip(environment: Environment, options: List[str]) -> None:
    """Install what the options say. Raises ``SetupError``."""
    command = [environment.python, "-m", "pip", "install", "--no-input", "--progress-bar=off"]
    command += ["--root-user-action=ignore", "--disable-pip-version-check", "--retries=3"]
    command += options
    child = subprocess.Popen(
        command,
        cwd=environment.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        errors="replace",
    )
    with child:
        output = follow(child, environment.log)
    if child.returncode == 0:
        return
    if any(sign in output for sign in NO_NETWORK):
        raise SetupError(
            "The packages could not be fetched: no connection to the package index; "
            "run the same command again when there is one."
        )
    raise SetupError(
        "pip could not install the packages (%s); its whole output is in %s."
        % (last_line(output), os.path.relpath(environment.log, environment.root))
    )


def follow(child: "subprocess.Popen[str]", log: str) -> str:
    """Read what pip says into the log; on a terminal, show the newest step on one line."""
    lines = []  # type: List[str]
    shown = sys.stderr.isatty()
    try:
        with open(log, "w", encoding="utf-8") as file:
            for line in child.stdout or ():
                file.write(line)
                lines.append(line)
                if shown and line.startswith(STEPS):
                    width = shutil.get_terminal_size().columns - 1
                    sys.stderr.write("\r\033[K" + line.strip()[:width])
                    sys.stderr.flush()
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
    return "".join(lines)


def last_line(output: Optional[str]) -> str:
    """The line that says most: the last error, else the last line."""
    lines = [line.strip() for line in (output or "").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    line = (errors or lines or ["it said nothing"])[-1].rstrip(".")
    return line[len("ERROR: ") :] if line.startswith("ERROR: ") else line


def dotted(version: Tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(str(part) for part in version)


def reason(error: OSError) -> str:
    """Why the system refused."""
    return (error.strerror or "unknown error").lower()


def say(line: str) -> None:
    """Tell the person what happens; output of commands stays on standard output."""
    sys.stderr.write(line + "\n")


def main(arguments: List[str], root: str = ROOT) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="bootstrap", description="Make the virtual environment.")
    parser.add_argument("command", choices=["setup"])
    parser.add_argument("--dev", action="store_true", help="also what tests and checks need")
    options = parser.parse_args(arguments)
    try:
        setup(Environment(root), options.dev)
    except SetupError as error:
        say("memory studio: %s" % error)
        return 1
    except OSError as error:
        say("memory studio: setup failed (%s: %s)." % (error.filename, reason(error)))
        return 1
    except KeyboardInterrupt:
        say("memory studio: setup was interrupted; run the same command again to finish it.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
