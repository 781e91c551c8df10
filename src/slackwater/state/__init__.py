"""Keyed state: packets on their way to it, and the packed pieces and hash buckets it is kept in."""
