"""Who calls, and what they may do: signatures, credentials, sessions, policies. Used with `--strict` only."""
