"""What becomes what, decided before anything is written."""
