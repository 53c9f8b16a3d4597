from runyard.sdk.datastores import Datastore as Datastore
