"""Archives of OpenSim regions and inventories (.oar, .iar), and the prims in them."""
