from runyard.sdk.widget.details import RunDetails as RunDetails
