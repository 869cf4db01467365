"""Blueprints of Timberborn (``.blueprint.json``): buildings as trees of placed models."""
