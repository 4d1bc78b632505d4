//! Real git repositories: reads histories, decodes contents, runs the git binary.
