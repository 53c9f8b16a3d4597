from runyard.sdk.webservice.kinds import AciWebservice as AciWebservice
from runyard.sdk.webservice.kinds import AksWebservice as AksWebservice
from runyard.sdk.webservice.kinds import LocalWebservice as LocalWebservice
from runyard.sdk.webservice.webservice import Webservice as Webservice
