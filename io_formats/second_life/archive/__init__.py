"""Archives of OpenSim: regions (``.oar``) and inventories (``.iar``) with everything that stands in them."""
