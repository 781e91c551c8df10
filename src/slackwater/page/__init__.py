"""The live page of a job: what it looks like in a browser, and the server that shows it."""
