"""Bridges: write messages of another protocol to a log or a Kafka topic, at least once.

`definition` is the source and the target, `messages` are the records, `targets` make them durable, `link` is one
connection to an MQTT broker, and `running` ties them together.
"""
