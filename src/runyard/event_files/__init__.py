"""Readers of TensorBoard event files, for the yard and for `runyard import`. They need numpy."""
