"""Files of body shapes: appearance exports of viewers, and body part assets."""
