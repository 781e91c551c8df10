"""Files as a sink: one folder of Parquet or JSON lines per batch, each of which appears atomically.

`definition` holds the sink as users define it and its writer; `batches` manages the folders and merges small ones;
`lease` fences the previous writer.
"""

from slackwater.connectors.files.sink.batches import OWNER, part_files, read_files
from slackwater.connectors.files.sink.definition import FilesSink, files

__all__ = ["OWNER", "FilesSink", "files", "part_files", "read_files"]
