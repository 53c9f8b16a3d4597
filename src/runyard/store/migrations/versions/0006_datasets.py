"""Datasets and their use by runs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("definition_key", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=True),
        sa.Column("files", sa.Integer(), nullable=True),
        sa.Column("bytes", sa.Integer(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("dataset_id"),
    )
    op.create_index("datasets_by_name", "datasets", ["name", "version"], unique=True)
    op.create_index("datasets_by_definition", "datasets", ["definition_key"])
    op.create_table(
        "data_uses",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("mode", sa.String(), nullable=False),
        sa.Column("datastore", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=True),
        sa.Column("dataset_name", sa.String(), nullable=True),
        sa.Column("dataset_version", sa.Integer(), nullable=True),
        sa.Column("digest", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "name"),
    )
    op.create_index("data_uses_by_dataset", "data_uses", ["dataset_id"])
    op.create_index("data_uses_by_digest", "data_uses", ["digest"])
