"""What was done, so that a later run need not do it again."""
