"""The lanes: the windows of many keys, a lane each."""
