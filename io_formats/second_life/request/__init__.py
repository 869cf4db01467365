"""The bodies of an upload: the fee request and what follows it."""
