"""Tools for Kafka topics: play a log into one, export one, read one, and run a broker of your own."""
