"""Frames, rates and playback settings of actions and scenes."""
