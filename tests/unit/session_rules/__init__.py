"""Tests of sessionkit/session_rules."""
