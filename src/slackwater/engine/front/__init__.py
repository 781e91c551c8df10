"""FRONT: from raw records to packets by key group, in one pass over each chunk."""
