from runyard.scoring.raw import AMLResponse as AMLResponse
