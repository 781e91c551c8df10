"""The figures of a job: the record of each batch, its history, the status of a job, Prometheus and OTLP."""
