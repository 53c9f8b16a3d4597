from runyard.scoring.rawhttp import AMLRequest as AMLRequest
from runyard.scoring.rawhttp import rawhttp as rawhttp
