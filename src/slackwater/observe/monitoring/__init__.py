"""Monitoring a job from outside: alert rules for Prometheus and a dashboard for Grafana, made from the metrics."""
