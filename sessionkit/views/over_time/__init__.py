"""Latency and open windows over the course of a run."""
