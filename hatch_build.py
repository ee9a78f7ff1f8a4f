"""Compiles the modules that work for every request, with mypyc, where a wheel is built and that is asked for.

    HATCH_BUILD_HOOKS_ENABLE=1 pip install .

Needs a C compiler. What is compiled goes into the wheel, beside the sources, and nowhere else: a working copy always
runs what stands there. Which modules they are stands in pyproject.toml.
"""

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileBuildHook(BuildHookInterface[Any]):
    """A hook of hatchling, which finds it by this file's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the results taken into the wheel; an editable installation stays as it is."""
        if version == "editable":
            return
        from mypyc.build import mypycify  # needed by nobody who compiles nothing
        from setuptools import Distribution

        self._folder = tempfile.TemporaryDirectory(prefix="bulk-compile-")
        generated, built, objects = (Path(self._folder.name, name) for name in ("c", "built", "objects"))
        extensions = mypycify(list(self.config["modules"]), target_dir=str(generated), debug_level="0")
        command = Distribution({"name": "bulk", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(built), str(objects)
        command.ensure_finalized()
        command.run()
        made = [path for path in built.rglob("*") if path.is_file()]
        build_data["force_include"].update({str(path): str(path.relative_to(built)) for path in made})
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if version != "editable":
            self._folder.cleanup()
