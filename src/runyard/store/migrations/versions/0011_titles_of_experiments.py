"""Titles of experiments: unique, and no longer part of their documents.

Concurrent MLflow clients could create several experiments of one title. The oldest keeps it, because clients were given
that one by the title; each of the others gets a number: "digits (2)". Runs and ids are unchanged.
"""

import json
from itertools import count

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.rename_table("experiments", "experiments_without_titles")
    op.create_table(
        "experiments",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("title"),
    )
    connection = op.get_bind()
    documents = connection.execute(
        sa.text("SELECT id, content, created_at FROM documents WHERE kind = 'experiment'")
    ).all()
    contents = {row.id: json.loads(row.content) for row in documents}
    experiments = {
        row.name: row.created_at
        for row in connection.execute(sa.text("SELECT name, created_at FROM experiments_without_titles"))
    }
    for row in documents:  # MLflow's default experiment may have been renamed before its first run
        if "title" in contents[row.id]:
            experiments.setdefault(row.id, row.created_at)
    oldest_first = sorted(experiments, key=lambda name: (experiments[name], name))
    titles = _unique_titles({name: contents.get(name, {}).pop("title", name) for name in oldest_first})
    for name in oldest_first:
        connection.execute(
            sa.text("INSERT INTO experiments (name, title, created_at) VALUES (:name, :title, :created_at)"),
            {"name": name, "title": titles[name], "created_at": experiments[name]},
        )
        if name in contents:
            connection.execute(
                sa.text("UPDATE documents SET content = :content WHERE kind = 'experiment' AND id = :name"),
                {"name": name, "content": json.dumps(contents[name])},
            )
    op.drop_table("experiments_without_titles")


def _unique_titles(titles: dict[str, str]) -> dict[str, str]:
    """Titles by name, without duplicates. Those that exist are not used as the numbered title of another one."""
    owners: dict[str, str] = {}
    for name, title in titles.items():
        owners.setdefault(title, name)
    for name, title in titles.items():
        if owners[title] != name:
            owners[next(other for n in count(2) if (other := f"{title} ({n})") not in owners)] = name
    return {name: title for title, name in owners.items()}
