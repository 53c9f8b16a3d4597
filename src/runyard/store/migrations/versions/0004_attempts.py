"""Earlier attempts of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("runs", sa.Column("attempts", sa.JSON(), nullable=True))
