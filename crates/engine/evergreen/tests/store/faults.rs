//! Requests that fail: a clear error, and nothing durable is lost.
