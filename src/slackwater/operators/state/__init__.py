"""Keyed state: the packets that carry rows to it, and the packed pieces and hash buckets that store it."""
