"""What `make status` and the report tell: how a work directory stands, why games fail, plots."""
