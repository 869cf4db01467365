"""Clothes on bodies: bodies of figures, binding as shown, fit, seams."""
