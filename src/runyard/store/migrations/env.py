"""Alembic's entry: one database, one connection, called by runyard.store.opening under the yard's lock."""

from alembic import context
from sqlalchemy import create_engine

from runyard.store.schema import metadata

url = context.config.attributes["url"]
assert url is not None
with create_engine(url).connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
