"""The match log: one record a document, who wants it, and how far each subscription has come with its own.

append ──▶ tail ──▶ rows ──▶ store             records and heads, durable in group commits
            │ full
            ▼
         segment_closer ──▶ segments           an index from subscription to positions
reader ◀── recent records, parts, segments     a backlog read back
cursors ◀── acknowledgements                   floors in pages, exceptions in leftovers
retention                                      whole segments go
"""

from server.log.cursors import Cursors
from server.log.match_log import Expired, MatchLog, Record, SegmentLimits

__all__ = ["Cursors", "Expired", "MatchLog", "Record", "SegmentLimits"]
