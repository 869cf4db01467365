"""Print a module for mypy that compares the modules of each format with the protocols of `io_formats/core/format.py`.

Formats import their modules by name, which mypy cannot follow. It finds a wrong signature, and documents of different
classes, in this module.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from load_package import load_package

load_package()
from meshferry.io_formats import registry  # noqa: E402
from meshferry.io_formats.core.format import ContextChecks, LinkedChecks, PathSceneWriter, SceneChecks  # noqa: E402

READING = {"sniffing": "Sniffer", "reader": "Reader[T]", "scene_mapping": "SceneReader[T]", "facts": "Facts[T]"}
WRITING = {"writer": "Writer[T]", "scene_mapping": "SceneWriter[T]", "checks": "Checks[T]"}
OPTIONAL = (
    ("checks", SceneChecks, "SceneChecks"),
    ("checks", ContextChecks, "ContextChecks[T]"),
    ("checks", LinkedChecks, "LinkedChecks[T]"),
    ("scene_mapping", PathSceneWriter, "PathSceneWriter[T]"),
)

print("from typing import TypeVar\n\nfrom meshferry.io_formats.core.format import *\n\nT = TypeVar('T')")
for known in registry.FORMATS:
    wanted = [*(READING.items() if known.is_read else ()), *(WRITING.items() if known.is_written else ())]
    wanted += [("writer", "SetWriter[T]")] if known.is_set else []
    wanted += [("reader", "PathReader[T]")] if known.reads_paths else []
    wanted += [("linking", "Linker[T]")] if known.is_linked else []
    wanted += [("patching", "Patcher")] if known.is_patched else []
    wanted += [("partners", "Partners[T]")] if known.partner_suffixes else []
    wanted += [(name, text) for name, protocol, text in OPTIONAL if isinstance(known.modules(name), protocol)]
    modules = [(known.modules(name).__name__, protocol) for name, protocol in wanted]
    parameters = ", ".join(f"a{number}: {protocol}" for number, (_, protocol) in enumerate(modules))
    print("".join(f"import {name}\n" for name in sorted({name for name, _ in modules})))
    print(f"def {known.name}({parameters}) -> None: ...\n")
    print(f"{known.name}({', '.join(name for name, _ in modules)})\n")
