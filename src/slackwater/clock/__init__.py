"""CLOCK: the watermarks and processing time of each batch, and the next clock from a batch's statistics."""
