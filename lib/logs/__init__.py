"""The games' log files in xml/: taking in, checking against the manifest, throwing damaged ones out."""
