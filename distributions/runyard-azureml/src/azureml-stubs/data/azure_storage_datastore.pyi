from runyard.sdk.data.datastore import AzureBlobDatastore as AzureBlobDatastore
from runyard.sdk.data.reference import DataReference as DataReference
