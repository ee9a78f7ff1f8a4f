"""Builds the packages. A wheel has what works for every request compiled with mypyc, where a C compiler works.

    pip install .                   # compiled if that is possible, plain Python if not
    BULK_COMPILE=0 pip install .    # plain Python
    BULK_COMPILE=1 pip install .    # compiled, or an error that says why not

What is compiled goes into the wheel, beside the sources, and nowhere else: an editable installation always runs what
stands in the working copy. Which modules they are, and what compiling needs, stands in pyproject.toml.

This file is four things: the build backend, which is hatchling but for what it requires; a build hook of hatchling; a
metadata hook, which makes the README one that a package index can show; and the program that compiles, which the build
hook starts as a process of its own, so that nothing that happens in there can end a build that may go on without it.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling import build as hatchling_build
from hatchling.build import *  # noqa: F403 - the functions of a build backend
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

WISH = "BULK_COMPILE"
"""The environment variable: 0 never compiles, 1 makes it an error where that fails."""

MOST_PROCESSES = 8
"""So many C compilers run at once at most; one takes up to 300 MB."""


class NotCompiled(Exception):
    """Why there is nothing compiled, in one line; `log` is what the tools printed."""

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.log = log


# The build backend


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what pip installs before it builds a wheel: what compiling needs too, but only where it can succeed.

    mypy reads the types of everything that the modules import; so all that Bulk needs is needed here already.
    """
    required = hatchling_build.get_requires_for_build_wheel(config_settings)
    if wish() is False or (wish() is None and fault_of_the_compiler()):
        return required
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    return [*required, *hook["compiling-requires"], *project["project"]["dependencies"]]


# The metadata hook


class ReadmeHook(MetadataHookInterface):
    """A hook of hatchling, which finds it by this file's name."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the package."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}


def without_relative_links(text: str) -> str:
    """Markdown whose links to files beside it are their text alone; a package index has no such files."""
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?![a-z][a-z+.-]*:|#)[^)\s]+\)", r"\1", text)


# The build hook


class CompileBuildHook(BuildHookInterface[Any]):
    """A hook of hatchling, which finds it by this file's name."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the results taken into the wheel; an editable installation stays as it is."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="bulk-compile-")
        built = Path(self._folder.name, "built")
        try:
            compile_apart(Path(self.root), list(self.config["modules"]), built)
        except NotCompiled as why:
            if wish():
                self._folder.cleanup()
                raise SystemExit(f"{why.log}{WISH}=1, and {why}") from None
            self.app.display_warning(f"Bulk is not compiled: {why}")
            return
        made = [path for path in built.rglob("*") if path.is_file()]
        build_data["force_include"].update({str(path): str(path.relative_to(built)) for path in made})
        build_data["pure_python"], build_data["infer_tag"] = False, True
        self.app.display_info(f"Bulk is compiled: {len(self.config['modules'])} modules")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if self._folder is not None:
            self._folder.cleanup()


def wish() -> bool | None:
    """Return what the user wants: compiled, not compiled, or (None) what is possible.

    Raises:
        SystemExit: the variable has a value that means nothing.
    """
    given = os.environ.get(WISH, "")
    if given not in ("", "0", "1"):
        raise SystemExit(f"{WISH}={given}: expected 0 (plain Python), 1 (compiled or an error), or nothing")
    return None if given == "" else given == "1"


def compile_apart(root: Path, modules: Sequence[str], built: Path) -> None:
    """Compile `modules` into the folder `built`, in a process of its own, and try whether they can be imported.

    Raises:
        NotCompiled: it is not wanted, not possible, or failed.
    """
    if wish() is False:
        raise NotCompiled(f"{WISH}=0")
    if fault := fault_of_the_compiler():
        raise NotCompiled(fault)
    for needed in ("mypyc", "setuptools"):
        if importlib.util.find_spec(needed) is None:
            raise NotCompiled(f"{needed} is not installed")
    _run([sys.executable, __file__, str(built), *modules], root)
    try_imports(root, modules, built)


def try_imports(root: Path, modules: Sequence[str], built: Path) -> None:
    """Import `modules` in a process of its own, as they would be installed with what was compiled into `built`.

    Raises:
        NotCompiled: they can't be imported, or are those in Python.
    """
    tried = built.with_name("tried")
    for package in ("bulk", "jobs/bulk_jobs"):
        shutil.copytree(root / package, tried / Path(package).name)
    shutil.copytree(built, tried, dirs_exist_ok=True)
    names = [module.removeprefix("jobs/").removesuffix(".py").replace("/", ".") for module in modules]
    code = f"""
import importlib, sys
sys.path.insert(0, ".")
for name in {names!r}:
    if importlib.import_module(name).__file__.endswith(".py"):
        sys.exit(f"{{name}} is imported from its source")
"""
    _run([sys.executable, "-c", code], tried)


def fault_of_the_compiler() -> str | None:
    """Why nothing can be compiled here: no C compiler, one that does not work, or no headers of Python."""
    if sys.implementation.name != "cpython":
        return "mypyc is for CPython"
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    if not command:
        return "there is no C compiler"
    with tempfile.TemporaryDirectory(prefix="bulk-compile-") as folder:
        source = Path(folder, "empty.c")
        source.write_text("#include <Python.h>\n", encoding="utf-8")
        arguments = ["-I", sysconfig.get_path("include"), "-c", str(source), "-o", str(source.with_suffix(".o"))]
        try:
            done = subprocess.run([*command, *arguments], capture_output=True, check=False, stdin=subprocess.DEVNULL)
        except OSError as error:
            return f"the C compiler can't be started: {command[0]}: {error.strerror}"
    return None if done.returncode == 0 else f"{command[0]} can't compile what includes Python.h"


def _run(command: Sequence[str], folder: Path) -> None:
    """Run a process to its end.

    Raises:
        NotCompiled: it failed; the reason is the last line that it printed.
    """
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise NotCompiled(f"compiling can't be started: {error}") from None
    if done.returncode:
        lines = done.stdout.split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {done.returncode}")
        raise NotCompiled(f"compiling failed: {last[:300]}", done.stdout)


# The program that compiles


def compile_modules(modules: Sequence[str], built: Path) -> None:
    """Compile `modules` into the folder `built`: each module as a C file of its own, on every core, and all of them
    linked as one library, so that a call from one to another is a call in C.
    """
    from mypyc.build import mypycify  # needed by nobody who compiles nothing
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class OnEveryCore(build_ext):
        def build_extensions(self) -> None:
            self.compiler.compile = each_apart(self.compiler.compile)
            super().build_extensions()

    generated, objects = (str(built.with_name(name)) for name in ("c", "objects"))
    # what an extra brings need not be there: it is imported where it is used
    options = ["--ignore-missing-imports"]
    extensions = mypycify([*options, *modules], target_dir=generated, debug_level="0", multi_file=True)
    for extension in extensions if os.name != "nt" else ():
        # what another library can't replace is called directly, and not by a table of addresses
        extension.extra_compile_args.append("-fvisibility=hidden")
    command = OnEveryCore(Distribution({"name": "bulk", "ext_modules": extensions}))
    command.build_lib, command.build_temp, command.parallel = str(built), objects, processes()
    command.ensure_finalized()
    command.run()


def each_apart(compile_all: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return a method `compile` of a C compiler that compiles the files it is given side by side."""

    def compile_each(sources: list[str], **options: Any) -> list[str]:
        with ThreadPoolExecutor(processes()) as threads:
            made = threads.map(lambda source: compile_all([source], **options), sources)
            return [each for objects in made for each in objects]

    return compile_each


def processes() -> int:
    """How many C compilers run at once: as many as this process may use cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES)


if __name__ == "__main__":
    compile_modules(sys.argv[2:], Path(sys.argv[1]))
