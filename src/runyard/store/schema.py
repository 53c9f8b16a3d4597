"""The tables. A change here is a new file in migrations/, never an edit of an old one."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

experiments = Table(
    "experiments",
    metadata,
    Column("name", String, primary_key=True),
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
    Column("timeline", JSON, nullable=False),  # state -> when it was first entered
    Column("warnings", JSON, nullable=False),
    Column("submitted_by", String),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("version", Integer, nullable=False, default=0),  # counts changes; followers wait for the next one
    Column("attempts", JSON),  # those that are over and were followed by another
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

# What a run was told: its script's arguments, and what other clients call parameters.
params = Table(
    "params",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("value", Text),
)

# Every run once, with the number of its last change: whoever knows up to a number asks for what came after it.
changes = Table(
    "changes",
    metadata,
    Column("change", Integer, primary_key=True, autoincrement=True),
    Column("run_id", String, nullable=False, unique=True),
    sqlite_autoincrement=True,  # a number is never given twice, not even when the last one is taken away
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
    Column("last", JSON),  # the newest value, for listings
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
    Column("summary", LargeBinary),  # the extremes of each stretch of points, as a small block: what charts read
    Column("data", LargeBinary, nullable=False),
)

# How far each journal file has been read; saved in the transaction that stores its points, so each is stored once.
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
    Column("sweep_id", String, primary_key=True),  # of the run that leads the children
    Column("spec", JSON, nullable=False),
    Column("going", Integer, nullable=False),  # 1 until its last word is written
    Column("created_at", Float, nullable=False),
    Index("sweeps_going", "going"),
)

# A child is written here before it is submitted: a yard that was killed between the two submits it again, as the same.
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

# What MLflow clients keep that runs have no place for: titles and tags of experiments, inputs of runs, logged models.
documents = Table(
    "documents",
    metadata,
    Column("kind", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False),  # the experiment or the run that it belongs to
    Column("content", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("documents_by_owner", "kind", "owner"),
)

# Datasets, one row for each version of a name; those that were used without a name have neither.
datasets = Table(
    "datasets",
    metadata,
    Column("dataset_id", String, primary_key=True),
    Column("name", String),
    Column("version", Integer),
    Column("kind", String, nullable=False),  # "file", "tabular"
    Column("definition", JSON, nullable=False),
    Column("definition_key", String, nullable=False),  # a hash: the same definition is found again
    Column("digest", String),  # of the content that it pointed to when it was saved
    Column("files", Integer),
    Column("bytes", Integer),
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("run_id", String),  # the run whose script saved it
    Column("created_at", Float, nullable=False),
    Index("datasets_by_name", "name", "version", unique=True),
    Index("datasets_by_definition", "definition_key"),
)

# Which data each run was given. Names are copied: what a run used stays told when a dataset is unregistered.
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

# A model's name counts its versions: a number is never given twice, not even after the last version was deleted.
model_names = Table(
    "model_names",
    metadata,
    Column("name", String, primary_key=True),
    Column("last_version", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
)

# Their files are rows of `artifacts`, under an owner of their own. What they come from is copied, so that it stays
# told when the environment is pruned or a dataset is unregistered.
models = Table(
    "models",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("registration_id", String, nullable=False, unique=True),  # sent again, it is the same version
    Column("description", Text),
    Column("framework", String),
    Column("framework_version", String),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("stage", String, nullable=False),
    Column("digest", String, nullable=False),  # of all names and contents: two versions with the same one are the same
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
    Column("data", JSON, nullable=False),  # what the run was given
    Column("details", JSON, nullable=False),  # samples, resources, datasets that were named, the model it was made of
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

# Who did what to a model, and when; it stays when a version is deleted.
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

services = Table(
    "services",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),  # "Local", "ACI", "AKS": what its configuration was called
    Column("state", String, nullable=False),
    Column("error", Text, nullable=False),
    Column("configuration", JSON, nullable=False),  # its keys are in its folder alone
    Column("description", Text),
    Column("tags", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("traffic", JSON, nullable=False),  # version -> its share in per cent; those that serve, and no others
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

# What the SDK called images until 2019: a description of a service that is not deployed yet.
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
    Column("configuration", JSON, nullable=False),  # never a credential: those are in a file of the owner's alone
    Column("is_default", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
)

# A transfer is written here before it begins: a yard that was killed goes on with it.
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

# The content that a file of a datastore had, as long as its mark is the same: an ETag, or what stat says of it.
seen_files = Table(
    "seen_files",
    metadata,
    Column("datastore", String, primary_key=True),
    Column("path", String, primary_key=True),
    Column("mark", String, nullable=False),
    Column("digest", String, nullable=False),
)
