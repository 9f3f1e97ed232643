"""Who is calling: tenants, catalogues, sources, and the machines and persons that operators provision."""
