"""Runs the jobs: each in a fresh process, in turns, and keeps what was measured."""
