"""Alembic's entry: one database, one connection, called by runyard.store.open_store under the yard's lock."""

from alembic import context
from sqlalchemy import create_engine

from runyard.store.schema import metadata

url = context.config.attributes["url"]
assert url is not None
with create_engine(url).begin() as connection:
    # all or nothing: Python begins no transaction for tables, and a yard that was killed on the way would leave half
    connection.exec_driver_sql("BEGIN")
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()
