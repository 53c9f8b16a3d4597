from runyard.sdk.notebook.widget.details import RunDetails as RunDetails
