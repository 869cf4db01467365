"""Frame ranges, frame rates and playback settings of actions and scenes."""
