"""The live page of a job: what the browser shows, and the server behind it."""
