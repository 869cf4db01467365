"""Materials of a project for a scene, each made once, and one warning for each kind of missing file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.messages import Message, Report, Text, counted, listed, of_kind
from ...core.scene import Material
from ...disk.file_names import numbered
from ...projects import Projects
from .guids import GUID_TABLE, plain_reference
from .material_shading import ShownMaterial, not_shown_warnings, shown_material
from .project import Project, open_folder
from .project_textures import TextureFinder

PROJECT = "Project"
"""Name of the custom property that holds the folder of a material's project."""
MOST_NAMES = 5
"""Maximum number of names in a warning."""


class ProjectMaterials:
    """The materials of a project that a scene uses.

    Parameters
    ----------
    project:
        The project.
    taken:
        Names of other materials in the scene.
    other:
        Another folder for textures that the project lacks.
    """

    def __init__(self, project: Project, taken: Iterable[str] = (), other: Project | None = None) -> None:
        self.project = project
        self._textures = TextureFinder(project, other)
        self.materials: list[Material] = []
        """The materials made so far, whose names are distinct."""
        self._names: dict[str, str] = {}
        """Name of the material of each reference."""
        self._taken = set(taken)
        self._shown: list[ShownMaterial] = []
        self._missing: dict[str, None] = {}
        self._needed: dict[str, None] = {}
        """Paths of the files from which missing materials would have been read."""
        self._problems: dict[Message, None] = {}

    def name_of(self, reference: str, surface: str) -> str:
        """Return the name of the material to which a reference leads.

        If it is missing, a material named ``surface`` is used.
        """
        plain = plain_reference(reference)
        if plain not in self._names:
            self._names[plain] = self._add(plain, surface)
        return self._names[plain]

    def _add(self, reference: str, surface: str) -> str:
        """Add the material of a reference, or one that stands for a missing material; return its name in the scene."""
        found = self.project.material(reference)
        if found is None:
            name = self._free(surface or reference)
            self._missing.setdefault(f"{surface} ({reference})" if surface else reference)
            self._needed.setdefault(self.project.find(reference).path or "")
            self.materials.append(Material(name, properties={"Missing Material": reference}))
            return name
        name = self._free(found.name)
        shown = shown_material(name, found, self._textures.find, self._textures.load)
        shown.material.properties[PROJECT] = str(self.project.root)
        self._shown.append(shown)
        self._problems.update(dict.fromkeys(found.problems))
        self.materials.append(shown.material)
        return name

    def _free(self, name: str) -> str:
        """Return a name that no other material of the scene has."""
        free = next(one for one in numbered(name, between=" ") if one not in self._taken)
        self._taken.add(free)
        return free

    def missing(self) -> list[Message]:
        """Return one message for each kind of missing file, with the reasons why related files cannot be read."""
        textures = {
            reference: Text("{} ({} of {})", self._textures.label(reference), slot, shown.material.name)
            for shown in self._shown
            for reference, slot in shown.missing.items()
        }
        report = Report()
        template = "{} missing in the project: {}"
        report.loss_of("missing-material", template, of_kind("material", self._missing), "material", most=MOST_NAMES)
        report.loss_of("missing-texture", template, of_kind("image", textures.values()), "texture", most=MOST_NAMES)
        if report.messages:
            self.project.report_causes([GUID_TABLE, *self._needed], report)
        return report.messages

    def warnings(self) -> list[Message]:
        """Return one message for each kind of missing file, and messages about settings that Blender does not show."""
        return [*self.missing(), *self._problems, *self.not_shown()]

    def not_shown(self) -> list[Message]:
        """Return the messages about settings that Blender does not show."""
        return not_shown_warnings(self._shown)


@dataclass(frozen=True)
class Incomplete:
    """A material of a project with missing textures."""

    name: str
    """Name of the material in the scene."""
    reference: str
    """GUID or name of the material in the project."""
    folder: str
    """Path of the project's folder."""


def complete_materials(
    materials: Sequence[Incomplete], folder: Path, projects: Projects
) -> tuple[list[ShownMaterial | None], list[Message]]:
    """Create materials again, taking textures that their project lacks from another folder.

    Parameters
    ----------
    materials:
        The materials.
    folder:
        The other folder: a project, or any folder with image files, ``.texture`` or ``.dds`` files.
    projects:
        The projects that are open.

    Returns
    -------
    :
        The new materials, None for each whose project no longer exists, and warnings.
    """
    other = open_folder(folder, projects)
    made: list[ShownMaterial | None] = []
    lost: dict[str, list[str]] = {}
    for material in materials:
        found = None
        if Path(material.folder).is_dir():
            project = open_folder(Path(material.folder), projects)
            found = project.material(material.reference)
        if found is None:
            lost.setdefault(material.folder, []).append(material.name)
            made.append(None)
            continue
        textures = TextureFinder(project, other)
        shown = shown_material(material.name, found, textures.find, textures.load)
        shown.material.properties[PROJECT] = material.folder
        made.append(shown)
    report = Report()
    for path, names in lost.items():
        template = "{} not found in the project '{}': {}"
        some = listed(of_kind("material", names), MOST_NAMES)
        report.loss("missing-material", template, counted(len(names), "material"), path, some)
    return made, report.messages
