from runyard.sdk.azureml.keyvault import Keyvault as Keyvault
