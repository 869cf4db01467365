"""Second Life Upload Request: names, capabilities and options."""

from ...core.format import FileFormat, modules_of
from ...core.options import Choice, Options, option
from ..options import _CAPABILITIES, ModelWriteOptions


class _ServerOptions(Options):
    """The options that dialogs show before those of all models."""

    server: str = option(
        "Server",
        "The server that takes the upload, since released servers of OpenSim misread some requests",
        default="SECOND_LIFE",
        section="File",
        choices=(
            Choice("SECOND_LIFE", "Second Life", "Equal objects share a mesh. The active object is the root"),
            Choice(
                "OPENSIM",
                "OpenSim",
                "A mesh for each object, and a white texture for faces without one. The root is the object marked as "
                "root of its linkset, otherwise the parent of all others, otherwise the active object",
            ),
        ),
    )


class WriteOptions(ModelWriteOptions, _ServerOptions):
    """The options for writing upload requests."""


SECOND_LIFE_REQUEST = FileFormat(
    name="second_life_request",
    label="Second Life Upload Request",
    extensions=(".llsd",),
    capabilities=_CAPABILITIES,
    modules=modules_of(__package__),
    is_read=False,
    is_set=True,
    export_options=WriteOptions,
)
