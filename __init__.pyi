from .io_formats.core.errors import MeshferryError, MissingLibraryError
from .io_formats.core.format import FileFormat
from .io_formats.core.messages import Message
from .library.conversion import convert
from .library.files import Written, check, formats, inspect, read, write
from .library.mesh import Mesh, Weights
from .library.scene import Clip, Node, Scene, Skeleton
from .library.trimesh_exchange import from_trimesh

__all__ = [
    "Clip",
    "FileFormat",
    "Mesh",
    "MeshferryError",
    "Message",
    "MissingLibraryError",
    "Node",
    "Scene",
    "Skeleton",
    "Weights",
    "Written",
    "__version__",
    "check",
    "convert",
    "formats",
    "from_trimesh",
    "inspect",
    "read",
    "write",
]

__version__: str

def register() -> None: ...
def unregister() -> None: ...
