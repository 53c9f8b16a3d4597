from runyard.scoring.raw import AMLRequest as AMLRequest
from runyard.scoring.raw import rawhttp as rawhttp
