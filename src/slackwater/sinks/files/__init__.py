"""Files as a sink: folders of Parquet or JSON lines, each of which appears whole.

`definition` is what users write, and an open sink; `batches` knows the folders, and merges small ones; `turn` shuts
out the writer before.
"""

from slackwater.sinks.files.batches import OWNER, part_files, read_files
from slackwater.sinks.files.definition import FilesSink, files

__all__ = ["OWNER", "FilesSink", "files", "part_files", "read_files"]
