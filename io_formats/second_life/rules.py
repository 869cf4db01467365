"""What the viewer's uploader and the simulator say of models (formats page, section 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..findings import Finding
from ..scene import Scene
from .models import Model


def check_models(
    models: Sequence[Model], scene: Scene, *, sizes: Mapping[str, Mapping[str, int]] | None = None
) -> list[Finding]:
    """Say what the uploader refuses (errors) and what surprises (warnings), each finding naming the model.

    Parameters
    ----------
    models:
        Of :func:`.models.models_of` of the scene.
    scene:
        Where the models are from; ``properties["as_imported"]`` means that nothing is filled in.
    sizes:
        Compressed bytes of each block by model name, where they are known.
    """
    raise NotImplementedError
