"""The only code that moves a run: load, decide by `lifecycle.step`, save, then do what was decided."""
