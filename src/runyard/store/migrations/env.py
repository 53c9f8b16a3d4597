"""Alembic's entry point, called by runyard.store.open_store while it holds the yard's lock."""

from alembic import context
from sqlalchemy import create_engine

from runyard.store.schema import metadata

url = context.config.attributes["url"]
assert url is not None
with create_engine(url).begin() as connection:
    # Python does not begin a transaction for DDL: a yard that is killed during a migration would leave half of it
    connection.exec_driver_sql("BEGIN")
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
