"""Routes that only MLflow's own web page uses, and the page itself."""
