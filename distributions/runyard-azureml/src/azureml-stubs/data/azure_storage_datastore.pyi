from runyard.sdk.data_reference import DataReference as DataReference
from runyard.sdk.datastore import AzureBlobDatastore as AzureBlobDatastore
