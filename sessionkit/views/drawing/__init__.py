"""What every picture stands on: colours, grammar, labels, axes, frames, playback."""
