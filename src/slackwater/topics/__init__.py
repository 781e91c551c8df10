"""Tools for Kafka topics: play a log into a topic, export a topic to a log, and run a development broker."""
