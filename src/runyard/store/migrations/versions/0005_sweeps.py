"""Sweeps and their children."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sweeps",
        sa.Column("sweep_id", sa.String(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("going", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("sweep_id"),
    )
    op.create_index("sweeps_going", "sweeps", ["going"])
    op.create_table(
        "trials",
        sa.Column("sweep_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("best", sa.Float(), nullable=True),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("stopped", sa.Text(), nullable=False),
        sa.Column("resumes", sa.String(), nullable=False),
        sa.Column("bracket", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("sweep_id", "number"),
        sa.UniqueConstraint("run_id"),
    )
