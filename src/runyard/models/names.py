"""Names, aliases and stages of models."""

from __future__ import annotations

import hashlib
import re

from runyard.errors import UserErrorException, WebserviceException

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
ALIAS = re.compile(r"(?!(?i:latest)$)[A-Za-z_][A-Za-z0-9._-]{0,254}")
STAGES = ("none", "candidate", "approved", "rejected", "archived")


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise WebserviceException(
            f"invalid model name {name!r}",
            hint="use at most 255 letters, digits, '.', '_' and '-', starting with a letter or digit",
        )


def check_alias(alias: str) -> None:
    if not ALIAS.fullmatch(alias):
        raise UserErrorException(
            f"invalid alias {alias!r}",
            hint="use letters, digits, '.', '_' and '-', starting with a letter or '_'; 'latest' is reserved",
        )


def check_stage(stage: str) -> None:
    if stage not in STAGES:
        raise UserErrorException(f"unknown stage {stage!r}", hint=f"use one of {', '.join(STAGES)}")


def to_model_name(title: str) -> str:
    """A valid model name for any title: the title itself if it is valid, otherwise a slug with a hash.

    Names are parts of URLs and folders of services; titles are names in MLflow, which may contain other characters.
    """
    if NAME.fullmatch(title):
        return title
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-_.")[:100] or "model"
    return f"{slug}-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:6]}"
