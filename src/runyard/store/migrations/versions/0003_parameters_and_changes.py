"""Parameters of runs, and the order of changes."""

import json

import sqlalchemy as sa
from alembic import op

from runyard.spec.parameters import parse_parameters

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "params",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )
    op.create_table(
        "changes",
        sa.Column("change", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("change"),
        sa.UniqueConstraint("run_id"),
        sqlite_autoincrement=True,
    )
    connection = op.get_bind()
    connection.execute(sa.text("INSERT INTO changes (run_id) SELECT run_id FROM runs ORDER BY number"))
    specs = connection.execute(sa.text("SELECT run_id, spec FROM runs WHERE spec IS NOT NULL")).all()
    rows = [
        {"run_id": run_id, "key": key, "value": value}
        for run_id, spec in specs
        for key, value in parse_parameters((json.loads(spec) or {}).get("arguments") or ()).items()
    ]
    if rows:
        connection.execute(sa.text("INSERT INTO params (run_id, key, value) VALUES (:run_id, :key, :value)"), rows)
