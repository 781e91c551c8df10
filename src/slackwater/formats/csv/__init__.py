"""CSV: one record per line."""

from slackwater.formats.csv.definition import CsvDecoder, CsvFormat, csv

__all__ = ["CsvDecoder", "CsvFormat", "csv"]
