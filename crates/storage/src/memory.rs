//! A storage and a directory in memory, for tests and small data.
