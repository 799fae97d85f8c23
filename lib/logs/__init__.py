"""The log files in xml/: importing and adopting them, comparing them with the manifest, moving damaged ones out."""
