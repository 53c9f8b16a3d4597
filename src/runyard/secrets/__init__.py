"""Secrets: encrypted in the home folder, and delivered only to the processes that use them.

Values are sealed with a key that is not in the database (:mod:`~runyard.secrets.cipher`). Users store named secrets
(:mod:`~runyard.secrets.named`); values that a run received in clear and that look like secrets are sealed in the run's
folder (:mod:`~runyard.secrets.run_values`).
"""
