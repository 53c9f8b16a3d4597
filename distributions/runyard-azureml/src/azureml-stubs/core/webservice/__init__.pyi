from runyard.sdk.webservice import Webservice as Webservice
from runyard.sdk.webservice_kinds import AciWebservice as AciWebservice
from runyard.sdk.webservice_kinds import AksWebservice as AksWebservice
from runyard.sdk.webservice_kinds import LocalWebservice as LocalWebservice
