"""Everything people see: tables, progress, messages."""
