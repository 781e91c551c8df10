"""Bridges: what comes by another protocol, written into a log or a Kafka topic, at least once.

`definition` says from where to where, `messages` what is written, `targets` how it becomes durable,
`link` is one connection to an MQTT broker, and `running` holds them together.
"""
