"""Body shapes of Second Life avatars: sliders and the scales and positions of joints that follow from them."""
