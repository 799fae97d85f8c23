"""What the scripts in bin/ share, in packages along the way of the data; manifest.py is the event log at the top."""
