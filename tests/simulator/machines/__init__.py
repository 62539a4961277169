"""Machines behind the simulator: what exists, told to whoever boots hosts, and what they report back.

The form of both is tests/lab/src/aws_state.rs.
"""
