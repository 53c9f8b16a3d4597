"""The tables. Every change here needs a new file in migrations/; never edit an old one."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

experiments = Table(
    "experiments",
    metadata,
    Column("name", String, primary_key=True),
    Column("title", String, nullable=False, unique=True),  # its name for MLflow clients: arbitrary text
    Column("created_at", Float, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),  # the order of submission
    Column("run_id", String, nullable=False, unique=True),
    Column("experiment", String, nullable=False),
    Column("parent_id", String),
    Column("root_id", String, nullable=False),
    Column("type", String),
    Column("name", String),
    Column("state", String, nullable=False),
    Column("managed", Integer, nullable=False),
    Column("end", JSON),
    Column("spec", JSON),
    Column("target", String),
    Column("snapshot_id", String),
    Column("environment_key", String),
    Column("timeline", JSON, nullable=False),  # state -> time it was first entered
    Column("warnings", JSON, nullable=False),
    Column("submitted_by", String),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column(
        "version", Integer, nullable=False, default=0
    ),  # incremented by every change; clients that follow a run wait for it
    Column("attempts", JSON),  # earlier ones, which were followed by another
    Index("runs_by_experiment", "experiment", "number"),
    Index("runs_by_parent", "parent_id", "number"),
    Index("runs_by_state", "state"),
)

tags = Table(
    "tags",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text),
    Index("tags_by_key", "key", "value"),
)

properties = Table(
    "properties",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text),
    Index("properties_by_key", "key", "value"),
)

# Parameters: the script's arguments, and those that other clients log.
params = Table(
    "params",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text),
)

# The number of each run's last change: a client that has all changes up to a number reads those after it.
changes = Table(
    "changes",
    metadata,
    Column("change", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String, nullable=False, unique=True),
    sqlite_autoincrement=True,  # numbers are never reused, not even that of the last row after its deletion
)

# One row per metric of a run; its points are in blocks.
series = Table(
    "series",
    metadata,
    Column("series_id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("kind", String, nullable=False),  # "scalar" (also lists), "row" (also tables), "image"
    Column("count", Integer, nullable=False),
    Column("last", JSON),  # the value of the last point, for listings
    # the point with the highest step and time: its index, step and time; only of scalars
    Column("last_index", Integer),
    Column("last_step", Integer),
    Column("last_time", Float),
    Index("series_by_run", "run_id", "name", unique=True),
)

blocks = Table(
    "blocks",
    metadata,
    Column("series_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("first", Integer, nullable=False),  # index in the series of the block's first point
    Column("count", Integer, nullable=False),
    Column("minimum", Float),
    Column("maximum", Float),
    Column("summary", LargeBinary),  # the extremes of each range of points, as a small block: read by charts
    Column("data", LargeBinary, nullable=False),
    # of scalars: by these, a point that is sent again is found without reading all blocks
    Column("minimum_step", Integer),
    Column("maximum_step", Integer),
    Column("minimum_time", Float),
    Column("maximum_time", Float),
)

# The read position in each journal file; saved in the transaction that stores its points, so each is stored once.
journals = Table(
    "journals",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("segment", Integer, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("dropped", Integer, nullable=False),  # points that the process lost to a full disk
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
)

computes = Table(
    "computes",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("configuration", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
)

sweeps = Table(
    "sweeps",
    metadata,
    Column("sweep_id", String, primary_key=True),  # the id of the parent run
    Column("spec", JSON, nullable=False),
    Column("going", Integer, nullable=False),  # 1 until it has ended
    Column("created_at", Float, nullable=False),
    Index("sweeps_going", "going"),
)

# A trial is written here before it is submitted: if the yard is killed between the two, the next one submits it again
# with the same id.
trials = Table(
    "trials",
    metadata,
    Column("sweep_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("run_id", String, nullable=False, unique=True),
    Column("parameters", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("best", Float),
    Column("reports", Integer, nullable=False),
    Column("stopped", Text, nullable=False),
    Column("resumes", String, nullable=False),
    Column("bracket", Integer, nullable=False),
)

registered_environments = Table(
    "registered_environments",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("definition", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
)

# Data of MLflow clients that has no separate table: titles and tags of experiments, inputs of runs, logged models,
# webhooks.
documents = Table(
    "documents",
    metadata,
    Column("kind", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False),  # the experiment or run that it belongs to
    Column("content", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("documents_by_owner", "kind", "owner"),
)

# Datasets: one row per version of a name; unregistered ones have neither name nor version.
datasets = Table(
    "datasets",
    metadata,
    Column("dataset_id", String, primary_key=True),
    Column("name", String),
    Column("version", Integer),
    Column("kind", String, nullable=False),  # "file", "tabular"
    Column("definition", JSON, nullable=False),
    Column("definition_key", String, nullable=False),  # a hash, to find an equal definition
    Column("digest", String),  # of the content when it was saved
    Column("files", Integer),
    Column("bytes", Integer),
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("run_id", String),  # the run whose script saved it
    Column("created_at", Float, nullable=False),
    Index("datasets_by_name", "name", "version", unique=True),
    Index("datasets_by_definition", "definition_key"),
)

# The data that each run used. Names are copied, so that they stay known after a dataset is unregistered.
data_uses = Table(
    "data_uses",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("mode", String, nullable=False),
    Column("datastore", String, nullable=False),
    Column("path", String, nullable=False),
    Column("dataset_id", String),
    Column("dataset_name", String),
    Column("dataset_version", Integer),
    Column("digest", String),  # of the content when the run was submitted
    Index("data_uses_by_dataset", "dataset_id"),
    Index("data_uses_by_digest", "digest"),
)

# Model names. A deleted one keeps its row, because numbers of versions are never reused.
model_names = Table(
    "model_names",
    metadata,
    Column("name", String, primary_key=True),
    Column("last_version", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("title", String),  # the name in MLflow, which may contain other characters
    Column("description", Text),
    Column("tags", JSON),
    Column("changed_at", Float),
    Column("deleted_at", Float),
    Index("model_names_by_title", "title", unique=True),
)

# Model files are rows of `artifacts` with their own owner. The origin of a model is copied, so that it stays known
# after the environment is pruned or a dataset is unregistered.
models = Table(
    "models",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("registration_id", String, nullable=False, unique=True),  # makes registration idempotent
    Column("description", Text),
    Column("framework", String),
    Column("framework_version", String),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("stage", String, nullable=False),
    Column("digest", String, nullable=False),  # of all file names and contents
    Column("size", Integer, nullable=False),
    Column("created_by", String),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
    Column("experiment", String),
    Column("run_id", String),
    Column("snapshot_id", String),
    Column("environment_key", String),
    Column("environment_lock", Text),
    Column("metrics", JSON, nullable=False),  # the last value of each metric of the run
    Column("data", JSON, nullable=False),  # inputs of the run
    Column("details", JSON, nullable=False),  # samples, resources, declared datasets, the model it was exported from
    Index("models_by_run", "run_id"),
)

model_aliases = Table(
    "model_aliases",
    metadata,
    Column("name", String, primary_key=True),
    Column("alias", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("set_by", String),
    Column("set_at", Float, nullable=False),
)

# Changes of models with user and time; kept when a version is deleted.
model_history = Table(
    "model_history",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("what", String, nullable=False),  # "registered", "stage", "alias", "alias removed", "deleted"
    Column("before", String),
    Column("after", String),
    Column("note", Text),
    Column("by", String),
    Column("at", Float, nullable=False),
    Index("model_history_by_name", "name", "version"),
)

# Events that are to be sent to webhooks, which are documents. A row is deleted after its delivery.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("delivery_id", String, primary_key=True),
    Column("webhook_id", String, nullable=False),
    Column("content", JSON, nullable=False),  # the body of the request
    Column("created_at", Float, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Index("webhook_deliveries_by_time", "due_at"),
)

services = Table(
    "services",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),  # "Local", "ACI" or "AKS", the class of its configuration
    Column("state", String, nullable=False),
    Column("error", Text, nullable=False),
    Column("configuration", JSON, nullable=False),  # without its keys, which are only in its folder
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("traffic", JSON, nullable=False),  # version -> percentage; only versions that serve
    Column("last_version", Integer, nullable=False),
    Column("created_by", String),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
)

service_versions = Table(
    "service_versions",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", String, nullable=False),
    Column("error", Text, nullable=False),
    Column("models", JSON, nullable=False),  # as [name, version]
    Column("spec", JSON, nullable=False),
    Column("environment_key", String),
    Column("created_at", Float, nullable=False),
)

# Images of the SDK before 2019: descriptions of services that are not deployed yet.
images = Table(
    "images",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("models", JSON, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
)

datastores = Table(
    "datastores",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column(
        "configuration", JSON, nullable=False
    ),  # without credentials, which are in a file that only the owner can read
    Column("is_default", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
)

# A transfer is written here before it starts, so that the next yard can continue it after a crash.
transfers = Table(
    "transfers",
    metadata,
    Column("transfer_id", String, primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("result", JSON),
    Column("created_at", Float, nullable=False),
    Index("transfers_by_state", "state"),
)

# Digests of files in datastores, valid as long as the mark (an ETag, or size and time) is unchanged.
seen_files = Table(
    "seen_files",
    metadata,
    Column("datastore", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("mark", String, nullable=False),
    Column("digest", String, nullable=False),
)
