"""Explaining how a run ended or why it stalled, and measuring the machine."""
