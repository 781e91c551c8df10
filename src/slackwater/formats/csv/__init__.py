"""CSV: one record a line."""

from slackwater.formats.csv.definition import CsvDecoder, CsvFormat, csv

__all__ = ["CsvDecoder", "CsvFormat", "csv"]
