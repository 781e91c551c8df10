"""CLOCK: the watermarks and processing time of each batch, and how a batch's statistics become the next clock."""
