"""Workload files: what is read, and the rule for what is not.

A format is recognised by its header columns or JSON keys, never by the file's name; the field of time of each is
read exactly, in integer picoseconds, and rebased so that the first request arrives at 0. Requests without an id are
called r0, r1, … by their row of data, those left out included.

Refused, with file, row (the line's number, from 1) and field:
an empty file, a file without rows, a missing column or field, a column of ours that we do not know, a column or key
given twice, a row with too few or too many cells; a count that is not a whole number from 1 to 10^12 (zero, negative,
NaN, infinite, `3.0`); a time that is negative, not a number or beyond 31 years; a stamp that is no moment of the
calendar; a row before the row above it; an id given twice; hash ids that do not fit the prompt; text that is not
UTF-8, truncated JSON, a NUL byte, a line beyond 4 MiB.

Read, counted and noted with the first row: equal times, rows that repeat a row of the same instant, blank lines, times
rounded to a picosecond, columns of other people's formats that we leave unread, and rows that a format itself marks
as failures (left out). Prompts are never cut. Of a file read in part (`first`), the rest is not looked at.
"""

from refsched.workload.formats.read import ReadOptions, read_lengths, read_workload

__all__ = ["ReadOptions", "read_lengths", "read_workload"]
