from runyard.sdk.data.registry import Datastore as Datastore
