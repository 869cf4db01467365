"""A worker of a batch that does as the names of its files say: for tests of those who watch it.

It converts nothing; its results tell which process did a file, and as its how manieth.
"""

import ctypes
import faulthandler
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load_package import load_package

load_package()

from meshferry.cli.batch.tasks import Result, Status  # noqa: E402
from meshferry.cli.batch.workers import worker  # noqa: E402
from meshferry.io_formats.core.errors import MissingLibraryError  # noqa: E402


class OddConverter(worker.Converter):
    done = 0

    def prepare(self):
        if ".anim" in self._format.extensions:
            raise MissingLibraryError("There is no Blender")

    def convert(self, loaded):
        self.done += 1
        name = loaded.task.path
        mark = self._output / name
        if name.startswith("crash") or (name.startswith("once") and not mark.exists()):
            mark.touch()
            print("about to crash")
            faulthandler._sigsegv()
        if name.startswith("loud"):
            print("much noise", flush=True)
        if name.startswith("leave"):
            print("first words\nI have had enough", flush=True)
            os._exit(7)
        if name.startswith("hang"):
            print("still here", flush=True)
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            mark.write_text(f"{os.getpid()} {child.pid}")
            if name.endswith("locked") and sys.platform != "win32":
                ctypes.PyDLL(None).sleep(600)  # keeps the lock of the interpreter, so no thread runs
            time.sleep(600)
        if name.startswith("slow"):
            mark.touch()
            time.sleep(0.5)
            mark.write_text("done")
        size = len(loaded.content) if loaded.content is not None else -1
        return Result(loaded.task, Status.DONE, facts={"pid": os.getpid(), "nth": self.done, "size": size})


worker.Converter = OddConverter

if __name__ == "__main__":
    sys.exit(worker.run())
