"""What a job does, in figures: the record of each batch, its history, the status of a job, Prometheus."""
