"""Titles, descriptions and tags of model names, and deliveries of webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for column in (
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("tags", sa.JSON(), nullable=True),
        sa.Column("changed_at", sa.Float(), nullable=True),
        sa.Column("deleted_at", sa.Float(), nullable=True),
    ):
        op.add_column("model_names", column)
    op.execute("UPDATE model_names SET title = name, changed_at = created_at")
    # until now a name without versions counted as deleted
    op.execute("UPDATE model_names SET deleted_at = created_at WHERE name NOT IN (SELECT name FROM models)")
    op.create_index("model_names_by_title", "model_names", ["title"], unique=True)
    op.create_table(
        "webhook_deliveries",
        sa.Column("delivery_id", sa.String(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("delivery_id"),
    )
    op.create_index("webhook_deliveries_by_time", "webhook_deliveries", ["due_at"])
