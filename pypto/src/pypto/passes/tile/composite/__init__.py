"""Recipes of LowerCompositeOps; importing registers them."""

from pypto.passes.tile.composite import collectives, trigonometry
