"""From the produce call of an event to the receive of its result, over a real Kafka broker."""
