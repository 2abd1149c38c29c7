"""What every chart is drawn with: colours, grammar, labels, frames, playback."""
