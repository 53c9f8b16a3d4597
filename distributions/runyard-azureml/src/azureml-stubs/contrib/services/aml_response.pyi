from runyard.scoring.rawhttp import AMLResponse as AMLResponse
