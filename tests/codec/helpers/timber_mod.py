"""A small mod with a building of two models, colliders, an attachment, a stage and a nested module."""

from __future__ import annotations

import shutil
from pathlib import Path

BLUEPRINT = """\
{
  // the building
  "BuildingModelSpec": {
    "FinishedModelName": "#Finished",
    "UnfinishedModelName": "#Unfinished",
    "FinishedUncoveredModelName": "",
    "UndergroundModelName": "#Underground"
  },
  "BlockObjectSpec": {
    "Size": { "X": 1, "Y": 1, "Z": 1 },
    "Blocks": [ { "MatterBelow": "Ground", "Occupations": "All", "Stackable": "None" } ],
    "Entrance": { "HasEntrance": true, "Coordinates": { "X": 0, "Y": -1, "Z": 0 } },
    "BaseZ": 0
  },
  "TemplateAttachmentsSpec": {
    "Attachments": [
      {
        "AttachmentId": "Smoke",
        "Prefab": "Smoke",
        "Parent": "Roof",
        "Position": { "X": 0.5, "Y": 1.0, "Z": 0.5 },
        "Rotation": { "X": 0.0, "Y": 0.0, "Z": 0.0 },
        "Scale": { "X": 1.0, "Y": 1.0, "Z": 1.0 }
      }
    ]
  },
  "Children": {
    "#Finished": {
      "CollidersSpec": {
        "BoxColliders": [
          { "Center": { "X": 0.5, "Y": 0.5, "Z": 0.5 }, "Size": { "X": 1.0, "Y": 2.0, "Z": 3.0 } },
        ],
        "CapsuleColliders": [
          { "Center": { "X": 0.5, "Y": 0.5, "Z": 0.5 }, "Radius": 0.25, "Height": 2.0, "Axis": "Y" }
        ]
      },
      "Children": {
        "Walls": {
          "TransformSpec": {
            "Position": { "X": 0.5, "Y": 0.0, "Z": 1 },
            "Rotation": { "X": 30.0, "Y": 270.0, "Z": 0.0 },
            "Scale": { "X": 1.0, "Y": 2.0, "Z": 1.5 }
          },
          "TimbermeshSpec": { "Model": "Parts/Windmill" }, // the walls
          "Children": {
            "Door": {
              "TimbermeshSpec": { "Model": "Parts/Missing" }
            },
            "Window": {
              "CollidersSpec": {
                "BoxColliders": [
                  { "Center": { "X": 0.0, "Y": 0.0, "Z": 0.0 }, "Size": { "X": 1.0, "Y": 1.0, "Z": 1.0 } }
                ]
              },
              "TimbermeshSpec": { "Model": "Parts/Windmill" }
            }
          }
        },
        "Roof": {
          "TransformSpec": {
            "Position": { "X": 0.0, "Y": 1.0, "Z": 0.0 },
            "Rotation": { "X": 0.0, "Y": 90.0, "Z": 0.0 },
            "Scale": { "X": 1.0, "Y": 1.0, "Z": 1.0 }
          },
          "TimbermeshSpec": { "Model": "Parts/Windmill" }
        },
        "Plain#nested": {
          "BlueprintPath": "Modules/Module.blueprint"
        },
        "Moved#nested": {
          "BlueprintPath": "Modules/Module.blueprint",
          "Modification": {
            "TransformSpec": { "Position": { "Z": 0.5 } },
            "Children": {
              "Beam": { "TransformSpec": { "Position": { "X": 0.25 } } }
            }
          }
        }
      }
    },
    "#Unfinished": {
      "Children": {
        "Stage": { "TimbermeshSpec": { "Model": "Parts/Windmill" } }
      }
    },
    "#Underground": {
      "TimbermeshSpec": { "Model": "Parts/Windmill" }
    }
  }
}
"""
MODULE = """\
{
  "TransformSpec": { "Position": { "X": 3.0, "Y": 0.0, "Z": 0.0 } },
  "CollidersSpec": {
    "SphereColliders": [ { "Center": { "X": 0.0, "Y": 0.0, "Z": 0.0 }, "Radius": 0.5 } ]
  },
  "Children": {
    "Beam": { "TimbermeshSpec": { "Model": "Parts/Windmill" } },
    "Post": { "TransformSpec": { "Position": { "X": 1.0, "Y": 0.0, "Z": 0.0 } } }
  }
}
"""
MODEL = Path(__file__).resolve().parents[3] / "examples" / "windmill.timbermesh"


def make(folder: Path) -> Path:
    """Write the mod; return the path of the building."""
    building = folder / "Buildings" / "House" / "House.blueprint.json"
    module = folder / "Modules" / "Module.blueprint.json"
    for path in (building, module, folder / "Parts" / "Windmill.timbermesh"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text("{}")
    building.write_text(BLUEPRINT, newline="")
    module.write_text(MODULE, newline="")
    shutil.copy(MODEL, folder / "Parts" / "Windmill.timbermesh")
    return building
