"""Tools for dead letters that a pipeline has written: find, inspect, repair and retry them."""
