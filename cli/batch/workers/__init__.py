"""The processes of this machine that convert."""
