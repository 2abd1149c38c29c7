"""Every chart on data of four shapes, drawn in a browser and looked at by a program."""
